/* SPDX-License-Identifier: MIT */
/*
 * Measured plans of six lists of tables on an H100 (data/measurements), and
 * models that never saw one of the lists: they learn from the drawn cases and
 * from the ranks of the plans of the other lists.
 */
#ifndef NEUROSHARD_TESTS_LEFT_OUT_H
#define NEUROSHARD_TESTS_LEFT_OUT_H

#include "costmodel/learning/evaluate.h"
#include "costmodel/learning/train.h"
#include "device/gemm.h"
#include "tests/price_sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_PLANS 64

/* A measured plan. Its seed is the seed of the samples of its ranks. */
struct measured_plan {
    uint64_t seed;
    char list[64];
};

/* Measurements of FBGEMM on an H100. */
struct measured {
    struct measured_plan plans[MAX_PLANS]; /* sorted by list */
    size_t n_plans;
    struct sample *cases, *ranks;
    size_t n_cases, n_ranks;
};

/* A list, a model that never saw it, and the ranks of its measured plans. */
struct left_out {
    const struct measured *measured;
    const char *list;
    struct model model;
    struct sample *ranks;    /* [n_ranks] */
    const double *predicted; /* [n_ranks], milliseconds */
    size_t n_ranks;
};

static inline const char *measurements_path(const char *name,
                                            struct arena *arena)
{
    const char *data = getenv("NEUROSHARD_DATA");

    return arena_printf(arena, "%s/measurements/%s", data ? data : "data",
                        name);
}

static inline int read_plans(struct measured *measured, const char *path,
                             struct err *err)
{
    FILE *file = fopen(path, "r");
    char line[256];

    if (!file)
        return err_set(err, ERR_IO, "%s cannot be opened", path);
    while (measured->n_plans < MAX_PLANS && fgets(line, sizeof(line), file)) {
        struct measured_plan *plan = &measured->plans[measured->n_plans];

        measured->n_plans +=
            sscanf(line, "%" SCNx64 ",%63[^,]", &plan->seed, plan->list) == 2;
    }
    fclose(file);
    return measured->n_plans ? 0 : err_set(err, ERR_IO, "%s has no plan", path);
}

/* Reads all measurements, in the arena. */
static inline int measured_read(struct measured *measured, struct arena *arena,
                                struct err *err)
{
    *measured = (struct measured){.n_plans = 0};
    if (gemm_init(err) ||
        read_plans(measured,
                   measurements_path("fbgemm-nvidia-h100-plans.csv", arena),
                   err) ||
        read_samples(&measured->cases, &measured->n_cases,
                     measurements_path("fbgemm-nvidia-h100.db", arena), arena,
                     err) ||
        read_samples(&measured->ranks, &measured->n_ranks,
                     measurements_path("fbgemm-nvidia-h100-plans.db", arena),
                     arena, err))
        return -1;
    return 0;
}

/* Returns the next list after `list` (NULL: the first one); NULL at the end. */
static inline const char *measured_next(const struct measured *measured,
                                        const char *list)
{
    for (size_t p = 0; p < measured->n_plans; p++)
        if (!list || (p && !strcmp(measured->plans[p - 1].list, list) &&
                      strcmp(measured->plans[p].list, list) != 0))
            return measured->plans[p].list;
    return NULL;
}

/* Returns the list of a rank's plan. */
static inline const char *list_of(const struct measured *measured,
                                  const struct sample *rank)
{
    for (size_t p = 0; p < measured->n_plans; p++)
        if (measured->plans[p].seed == rank->seed)
            return measured->plans[p].list;
    return "";
}

/* Trains a model without the ranks of the list, and predicts them. Everything
 * is in the arena. */
static inline int leave_out(struct left_out *left_out,
                            const struct measured *measured, const char *list,
                            const struct train_options *options,
                            struct arena *arena, struct err *err)
{
    struct sample *seen =
        ARENA_NEW(arena, struct sample, measured->n_cases + measured->n_ranks);
    size_t n_seen = 0;
    struct evaluation evaluation;
    struct dataset dataset;

    *left_out = (struct left_out){
        .measured = measured,
        .list = list,
        .ranks = ARENA_NEW(arena, struct sample, measured->n_ranks)};
    for (size_t i = 0; i < measured->n_cases; i++)
        seen[n_seen++] = measured->cases[i];
    for (size_t i = 0; i < measured->n_ranks; i++)
        if (strcmp(list_of(measured, &measured->ranks[i]), list) != 0)
            seen[n_seen++] = measured->ranks[i];
        else
            left_out->ranks[left_out->n_ranks++] = measured->ranks[i];
    if (train_fit(&left_out->model, seen, n_seen, options, arena, err))
        return -1;
    evaluate_model(&evaluation, &left_out->model, seen, n_seen);
    evaluation_store(&left_out->model, &evaluation);
    left_out->predicted =
        model_predicts(&dataset, &left_out->model, left_out->ranks,
                       left_out->n_ranks, sample_trains, arena);
    return 0;
}

/* Slowest rank of a plan, in milliseconds: measured and predicted. */
struct slowest {
    double ms, predicted_ms;
    double error_frac; /* interval of the rank predicted to be slowest */
};

static inline struct slowest slowest_of(const struct left_out *left_out,
                                        const struct measured_plan *plan)
{
    struct slowest slowest = {0, 0, NAN};

    for (size_t i = 0; i < left_out->n_ranks; i++) {
        const struct sample *rank = &left_out->ranks[i];
        const struct interval *interval;

        if (rank->seed != plan->seed)
            continue;
        slowest.ms = fmax(slowest.ms, rank->total.median_ms);
        if (left_out->predicted[i] <= slowest.predicted_ms)
            continue;
        interval =
            interval_find(&left_out->model.intervals, interval_class_of(rank));
        slowest.predicted_ms = left_out->predicted[i];
        slowest.error_frac = interval ? interval->error_frac : NAN;
    }
    return slowest;
}

/* Errors of the ratio of two plans. */
struct ratio_error {
    double frac;  /* like interval_error, of the ratio of the slowest ranks */
    double share; /* frac over the larger error of the two prices */
};

/* Fills errors[] with all pairs of plans of the list left out. Returns their
 * number, at most MAX_PLANS * (MAX_PLANS - 1) / 2. */
static inline size_t ratio_errors(struct ratio_error *errors,
                                  const struct left_out *left_out)
{
    const struct measured *measured = left_out->measured;
    struct slowest plans[MAX_PLANS];
    size_t n_plans = 0, n = 0;

    for (size_t p = 0; p < measured->n_plans; p++) {
        if (strcmp(measured->plans[p].list, left_out->list) != 0)
            continue;
        plans[n_plans] = slowest_of(left_out, &measured->plans[p]);
        for (size_t q = 0; q < n_plans; q++) {
            const struct slowest *one = &plans[n_plans], *other = &plans[q];
            const double frac = interval_error(
                one->ms / other->ms, one->predicted_ms / other->predicted_ms);

            errors[n++] = (struct ratio_error){
                frac, frac / fmax(one->error_frac, other->error_frac)};
        }
        n_plans++;
    }
    return n;
}

#endif
