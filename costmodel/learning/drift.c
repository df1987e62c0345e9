/* SPDX-License-Identifier: MIT */
/*
 * Finds the last change of a mean by binary segmentation (Scott and Knott
 * 1974), applied to the logarithms of the errors in time order.
 *
 * For each moment, the mean error after it is compared with the mean error
 * before it. The comparison is done separately for each class, so that
 * differences between classes cancel out. A class has the weight n m / (n + m)
 * for n samples before and m after. The most significant moment is a change if
 * it is beyond chance. The search then continues after it.
 */
#include "costmodel/learning/drift.h"

#include "base/hash.h"
#include "base/stats.h"
#include "costmodel/learning/dataset.h"
#include "costmodel/learning/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Thresholds for a change:
 *
 *   LEAST_ERRORS  z-score; the maximum over thousands of moments reaches 4
 *                 by chance
 *   LEAST_CHANGE  relative size; smaller changes are noise
 *   LEAST_WEIGHT  weight n m / (n + m) of the samples before and after;
 *                 it is 10 for ten samples on one side and many on the other
 */
#define LEAST_ERRORS 6.0
#define LEAST_CHANGE 0.03
#define LEAST_WEIGHT 10.0
/* Limits for the error of a single sample; larger errors are clipped to the
 * limit. MOST_ERRORS is in standard deviations, which are estimated from the
 * median. The limit is at least LEAST_COUNTED (relative), so that drift can
 * also be found on a GPU whose times hardly vary. */
#define MOST_ERRORS 3.0
#define LEAST_COUNTED (1.4 * LEAST_CHANGE)

/* A fused or executed sample, with the error of the model's prediction. */
struct drift_point {
    const struct sample *sample;
    double predicted_ms;
    double error; /* log(measured / predicted), clipped */
    size_t class; /* index of the class of similar work */
};

/* Errors of one device in time order. */
struct series {
    struct drift_point *points; /* [n] */
    size_t n, n_classes;
    double std; /* standard deviation of the errors */
    struct arena arena;
};

static const char *time_of(const struct sample *sample)
{
    return sample->started_at ? sample->started_at : "";
}

/* Returns true if the model did not learn from the sample. Samples of single
 * tables are excluded, because their errors are correlated with those of the
 * fused case that they belong to. */
static bool is_unseen(const struct sample *sample, const struct model *model)
{
    return sample_trains(sample) && sample->kind != SAMPLE_SINGLE &&
           strcmp(time_of(sample), model->training.measured_from) >= 0 &&
           (sample_split(sample) == SPLIT_HELD_OUT ||
            strcmp(time_of(sample), model->training.measured_to) > 0);
}

static int compare_points(const void *a, const void *b)
{
    const struct drift_point *x = a, *y = b;
    const int order = strcmp(time_of(x->sample), time_of(y->sample));

    return order ? order : sample_compare(x->sample, y->sample);
}

/* Returns the hash of a class of similar work: samples of the same setting
 * except for the driver, and of similar tables, rows and times. */
static uint64_t class_key(const struct drift_point *point)
{
    const struct sample *sample = point->sample;
    const struct sample_setting *setting = sample->setting;
    const char *host = setting_known(setting->host);
    double key[] = {sample->kind,
                    setting->precision,
                    setting->optimizer,
                    floor(log2(setting->batch)),
                    floor(log2(sample->n_tables)),
                    floor(log2(point->predicted_ms) / 4),
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
    ms = model_predicts(&dataset, model, unseen, series->n, sample_trains,
                        arena);
    series->points = ARENA_NEW(arena, struct drift_point, series->n);
    for (size_t i = 0; i < series->n; i++)
        series->points[i] = (struct drift_point){&unseen[i], ms[i],
                                                 log(dataset.ms[i] / ms[i]), 0};
    qsort(series->points, series->n, sizeof(*series->points), compare_points);
}

/* Subtracts the median from the errors of a series, and clips outliers. */
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

/* Number and sum of errors of the samples of one class, before and after a
 * moment. */
struct drift_tally {
    double n[2], sum[2];
};

/* Returns the change of the mean error at a moment. Stores the weight of the
 * samples that show this change in *weight. */
static double change_of(const struct drift_tally *tallies, size_t n,
                        double *weight)
{
    double shift = 0;

    *weight = 0;
    for (const struct drift_tally *tally = tallies; tally < tallies + n;
         tally++) {
        const double before = tally->n[0], after = tally->n[1];

        if (before * after < 0.5)
            continue;
        *weight += before * after / (before + after);
        shift +=
            (before * tally->sum[1] - after * tally->sum[0]) / (before + after);
    }
    return shift / fmax(*weight, 0.5);
}

/* Returns the moment after `begin` with the most significant change, or `begin`
 * if there is no change. */
static size_t find_change(struct series *series, size_t begin)
{
    const size_t n_classes = series->n_classes;
    struct drift_tally *tallies =
        ARENA_NEW(&series->arena, struct drift_tally, n_classes);
    double most = LEAST_ERRORS;
    size_t pos = begin;

    for (size_t i = begin; i < series->n; i++) {
        tallies[series->points[i].class].n[1]++;
        tallies[series->points[i].class].sum[1] += series->points[i].error;
    }
    for (size_t i = begin; i < series->n; i++) {
        const struct drift_point *point = &series->points[i];
        struct drift_tally *tally = &tallies[point->class];
        double change, weight;

        tally->n[0]++;
        tally->n[1]--;
        tally->sum[0] += point->error;
        tally->sum[1] -= point->error;
        change = fabs(change_of(tallies, n_classes, &weight));
        if (weight >= LEAST_WEIGHT && change > LEAST_CHANGE &&
            change * sqrt(weight) > most * series->std) {
            most = change * sqrt(weight) / series->std;
            pos = i + 1;
        }
    }
    return pos;
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
    double *predicted = ARENA_NEW(&series->arena, double, series->n);

    for (int now = 0; now < 2; now++) {
        size_t n = 0;

        for (size_t i = now ? begin : 0; i < series->n; i++) {
            const struct drift_point *point = &series->points[i];

            if ((number && interval_class_of(point->sample) != name) ||
                now != (strcmp(time_of(point->sample), promoted) > 0))
                continue;
            took[n] = point->sample->total.median_ms;
            predicted[n++] = point->predicted_ms;
        }
        *(now ? &class->now : &class->then) =
            errors_of(name, took, predicted, n);
        for (size_t i = 0; i < n; i++)
            took[i] /= predicted[i];
        class->ratio = stats_median(took, n);
    }
}

void drift_find(struct drift *drift, const struct model *model,
                const struct sample *samples, size_t n)
{
    struct series series = {0};
    size_t begin, pos = 0;

    find_points(&series, model, samples, n);
    find_classes(&series);
    tame_errors(&series);
    do {
        begin = pos;
        pos = find_change(&series, begin);
    } while (pos != begin);
    drift->is_seen = begin > 0;
    drift->since = begin ? time_of(series.points[begin].sample)
                         : model->training.measured_from;
    for (unsigned c = 0; c < MAX_INTERVALS; c++)
        judge_class(&drift->classes[c], c, &series, begin,
                    model->training.measured_to);
    arena_release(&series.arena);
}
