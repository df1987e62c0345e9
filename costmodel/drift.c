/* SPDX-License-Identifier: MIT */
/*
 * The last change of a mean: binary segmentation (Scott and Knott 1974) of the
 * errors' logarithms in time. At each moment the mean after it is compared with
 * that before it, class by class, each class weighted by how well it tells
 * (n m / (n + m) for n and m samples), so that what differs between classes
 * cancels out. The moment that tells best is a change where that is beyond
 * chance; behind it the search goes on.
 */
#include "costmodel/drift.h"

#include "base/hash.h"
#include "base/stats.h"
#include "costmodel/dataset.h"
#include "costmodel/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A change counts from here on: in standard errors, of which the best of
 * thousands of moments is 4 by chance; as a share of the time, less than which
 * is weather; and by the weight of the samples on its sides, which is 10 for
 * ten beside many. */
#define LEAST_ERRORS 6.0
#define LEAST_CHANGE 0.03
#define LEAST_WEIGHT 10.0
/* Errors count up to so many usual ones; but beyond the least change, so that a
 * GPU whose times hardly vary can change, too. */
#define MOST_ERRORS 3.0
#define LEAST_COUNTED (1.4 * LEAST_CHANGE)

/* A fused or executed sample, and what the model says of it. */
struct point {
    const struct sample *sample;
    double says_ms;
    double error; /* log(measured / said), within what is usual */
    size_t class; /* of like work */
};

/* In the order of time. */
struct series {
    struct point *points; /* [n] */
    size_t n, n_classes;
    double std; /* of an error */
    struct arena arena;
};

static const char *time_of(const struct sample *sample)
{
    return sample->started_at ? sample->started_at : "";
}

/* Singles hang together with their case. */
static bool is_unseen(const struct sample *sample, const struct model *model)
{
    return sample_trains(sample) && sample->kind != SAMPLE_SINGLE &&
           strcmp(time_of(sample), model->training.measured_from) >= 0 &&
           (sample_split(sample) == SPLIT_HELD_OUT ||
            strcmp(time_of(sample), model->training.measured_to) > 0);
}

static int compare_points(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    const int order = strcmp(time_of(x->sample), time_of(y->sample));

    return order ? order : sample_compare(x->sample, y->sample);
}

/* Of what is alike in setting, but for the driver, in tables, rows and time. */
static uint64_t class_key(const struct point *point)
{
    const struct sample *sample = point->sample;
    const struct sample_setting *setting = sample->setting;
    const char *host = setting_known(setting->host);
    double key[] = {sample->kind,
                    setting->precision,
                    setting->optimizer,
                    floor(log2(setting->batch)),
                    floor(log2(sample->n_tables)),
                    floor(log2(point->says_ms) / 4),
                    0};

    for (uint32_t t = 0; t < sample->n_tables; t++)
        key[6] =
            fmax(key[6], floor(log2((double)sample->tables[t].n_rows) / 8));
    return hash_bytes(key, sizeof(key), hash_bytes(host, strlen(host), 0));
}

static void find_classes(struct series *series)
{
    uint64_t *keys = ARENA_NEW(&series->arena, uint64_t, series->n);

    for (size_t i = 0; i < series->n; i++) {
        const uint64_t key = class_key(&series->points[i]);
        size_t k = 0;

        while (k < series->n_classes && keys[k] != key)
            k++;
        if (k == series->n_classes)
            keys[series->n_classes++] = key;
        series->points[i].class = k;
    }
}

static void find_points(struct series *series, const struct model *model,
                        const struct sample *samples, size_t n)
{
    struct arena *arena = &series->arena;
    struct sample *unseen = ARENA_NEW(arena, struct sample, n);
    struct dataset dataset;
    double *ms;

    for (size_t i = 0; i < n; i++)
        if (is_unseen(&samples[i], model))
            unseen[series->n++] = samples[i];
    ms = model_says(&dataset, model, unseen, series->n, sample_trains, arena);
    series->points = ARENA_NEW(arena, struct point, series->n);
    for (size_t i = 0; i < series->n; i++)
        series->points[i] =
            (struct point){&unseen[i], ms[i], log(dataset.ms[i] / ms[i]), 0};
    qsort(series->points, series->n, sizeof(*series->points), compare_points);
}

/* Cuts off what is far from the median. */
static void tame_errors(struct series *series)
{
    double *errors = ARENA_NEW(&series->arena, double, series->n), middle, most;

    for (size_t i = 0; i < series->n; i++)
        errors[i] = series->points[i].error;
    middle = stats_median(errors, series->n);
    for (size_t i = 0; i < series->n; i++)
        errors[i] = fabs(series->points[i].error - middle);
    most = fmax(LEAST_COUNTED,
                MOST_ERRORS * 1.4826 * stats_median(errors, series->n));
    for (size_t i = 0; i < series->n; i++) {
        double *error = &series->points[i].error;

        *error = fmax(-most, fmin(most, *error - middle));
        errors[i] = *error * *error;
    }
    series->std = sqrt(stats_mean(errors, series->n));
}

/* A class before and after a moment. */
struct tally {
    double n[2], sum[2];
};

/* How the mean changes, and with what weight that is known. */
static double change_of(const struct tally *tallies, size_t n, double *weight)
{
    double shift = 0;

    *weight = 0;
    for (const struct tally *tally = tallies; tally < tallies + n; tally++) {
        const double before = tally->n[0], after = tally->n[1];

        if (before * after < 0.5)
            continue;
        *weight += before * after / (before + after);
        shift +=
            (before * tally->sum[1] - after * tally->sum[0]) / (before + after);
    }
    return shift / fmax(*weight, 0.5);
}

/* The moment behind `begin` at which the mean changes most; `begin` where none
 * is a change. */
static size_t find_change(struct series *series, size_t begin)
{
    const size_t n_classes = series->n_classes;
    struct tally *tallies = ARENA_NEW(&series->arena, struct tally, n_classes);
    double most = LEAST_ERRORS;
    size_t at = begin;

    for (size_t i = begin; i < series->n; i++) {
        tallies[series->points[i].class].n[1]++;
        tallies[series->points[i].class].sum[1] += series->points[i].error;
    }
    for (size_t i = begin; i < series->n; i++) {
        const struct point *point = &series->points[i];
        struct tally *tally = &tallies[point->class];
        double change, weight;

        tally->n[0]++;
        tally->n[1]--;
        tally->sum[0] += point->error;
        tally->sum[1] -= point->error;
        change = fabs(change_of(tallies, n_classes, &weight));
        if (weight >= LEAST_WEIGHT && change > LEAST_CHANGE &&
            change * sqrt(weight) > most * series->std) {
            most = change * sqrt(weight) / series->std;
            at = i + 1;
        }
    }
    return at;
}

size_t drift_weigh(const char *since, struct sample *samples, size_t n)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++)
        if (strcmp(time_of(&samples[i]), since) >= 0)
            samples[n_kept++] = samples[i];
    return n_kept;
}

static void judge_class(struct drift_class *class, unsigned number,
                        struct series *series, size_t begin,
                        const char *promoted)
{
    const char *name = interval_classes[number];
    double *took = ARENA_NEW(&series->arena, double, series->n);
    double *says = ARENA_NEW(&series->arena, double, series->n);

    for (int now = 0; now < 2; now++) {
        size_t n = 0;

        for (size_t i = now ? begin : 0; i < series->n; i++) {
            const struct point *point = &series->points[i];

            if ((number && interval_class_of(point->sample) != name) ||
                now != (strcmp(time_of(point->sample), promoted) > 0))
                continue;
            took[n] = point->sample->total.median_ms;
            says[n++] = point->says_ms;
        }
        *(now ? &class->now : &class->then) = errors_of(name, took, says, n);
        for (size_t i = 0; i < n; i++)
            took[i] /= says[i];
        class->ratio = stats_median(took, n);
    }
}

void drift_find(struct drift *drift, const struct model *model,
                const struct sample *samples, size_t n)
{
    struct series series = {0};
    size_t begin, at = 0;

    find_points(&series, model, samples, n);
    find_classes(&series);
    tame_errors(&series);
    do {
        begin = at;
        at = find_change(&series, begin);
    } while (at != begin);
    drift->is_seen = begin > 0;
    drift->since = begin ? time_of(series.points[begin].sample)
                         : model->training.measured_from;
    for (unsigned c = 0; c < MAX_INTERVALS; c++)
        judge_class(&drift->classes[c], c, &series, begin,
                    model->training.measured_to);
    arena_release(&series.arena);
}
