/* SPDX-License-Identifier: MIT */
/*
 * Judges models by lists of tables that they never saw. For each list with
 * measured plans, trains a model on all other measurements of FBGEMM on an
 * H100: the drawn cases, and the ranks of the plans of the other lists. Prints
 * the errors of its predictions of the ranks of the list left out, the share
 * inside its intervals, and the regret of the plan whose slowest rank it
 * predicts to be fastest.
 *
 *     bench_ranks [monotone|roofline-net|net|roofline]
 */

#include "base/stats.h"
#include "costmodel/learning/evaluate.h"
#include "costmodel/learning/gemm.h"
#include "costmodel/learning/train.h"
#include "tests/price_sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_PLANS 64
#define CASES "fbgemm-nvidia-h100.db"
#define RANKS "fbgemm-nvidia-h100-plans.db"
#define PLANS "fbgemm-nvidia-h100-plans.csv"

/* A measured plan. Its seed is the seed of the samples of its ranks. */
struct measured_plan {
    uint64_t seed;
    char list[64];
};

struct judged {
    struct measured_plan plans[MAX_PLANS];
    size_t n_plans;
    struct sample *cases, *ranks;
    size_t n_cases, n_ranks;
};

/* Sums over the lists. */
struct tally {
    double *apes; /* [n_ranks] */
    size_t n, n_within;
};

static const char *data_path(const char *name, struct arena *arena)
{
    const char *data = getenv("NEUROSHARD_DATA");

    return arena_printf(arena, "%s/measurements/%s", data ? data : "data",
                        name);
}

static int read_plans(struct judged *judged, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[256];

    if (!file)
        return -1;
    while (judged->n_plans < MAX_PLANS && fgets(line, sizeof(line), file)) {
        struct measured_plan *plan = &judged->plans[judged->n_plans];

        judged->n_plans +=
            sscanf(line, "%" SCNx64 ",%63[^,]", &plan->seed, plan->list) == 2;
    }
    fclose(file);
    return judged->n_plans ? 0 : -1;
}

/* Returns the list of a rank's plan. */
static const char *list_of(const struct judged *judged,
                           const struct sample *rank)
{
    for (size_t p = 0; p < judged->n_plans; p++)
        if (judged->plans[p].seed == rank->seed)
            return judged->plans[p].list;
    return "";
}

/* Returns the regret of the plan of the list that the model picks: time of its
 * slowest rank over that of the best plan, minus 1. */
static double regret_of(const struct judged *judged, const char *list,
                        const struct sample *ranks, const double *predicted,
                        size_t n)
{
    double picked_ms = NAN, least_predicted = INFINITY, least_ms = INFINITY;

    for (size_t p = 0; p < judged->n_plans; p++) {
        double ms = 0, says = 0;

        if (strcmp(judged->plans[p].list, list) != 0)
            continue;
        for (size_t i = 0; i < n; i++)
            if (ranks[i].seed == judged->plans[p].seed) {
                ms = fmax(ms, ranks[i].total.median_ms);
                says = fmax(says, predicted[i]);
            }
        least_ms = fmin(least_ms, ms);
        if (says < least_predicted) {
            least_predicted = says;
            picked_ms = ms;
        }
    }
    return picked_ms / least_ms - 1;
}

static void judge(const struct judged *judged, const char *list,
                  const struct model *model, const struct sample *ranks,
                  size_t n, struct tally *tally, struct arena *arena)
{
    double *apes = ARENA_NEW(arena, double, n), bias = 0;
    struct dataset dataset;
    const double *predicted =
        model_predicts(&dataset, model, ranks, n, sample_trains, arena);
    size_t n_within = 0;

    for (size_t i = 0; i < n; i++) {
        const double ms = ranks[i].total.median_ms;
        const struct interval *interval =
            interval_find(&model->intervals, interval_class_of(&ranks[i]));

        apes[i] = fabs(predicted[i] / ms - 1);
        bias += log(predicted[i] / ms) / (double)n;
        n_within += interval &&
                    interval_error(ms, predicted[i]) <= interval->error_frac;
        tally->apes[tally->n++] = apes[i];
    }
    tally->n_within += n_within;
    printf("%-32s %6zu %7.2f %8.2f %8.3f %9.1f %8.2f\n", list, n,
           100 * stats_mean(apes, n), 100 * stats_median(apes, n), exp(bias),
           100 * (double)n_within / (double)n,
           100 * regret_of(judged, list, ranks, predicted, n));
}

/* Trains without the ranks of the list, and judges the model by them. */
static int leave_out(const struct judged *judged, const char *list,
                     const struct train_options *options, struct tally *tally,
                     struct err *err)
{
    struct arena arena = {0};
    struct sample *seen =
        ARENA_NEW(&arena, struct sample, judged->n_cases + judged->n_ranks);
    struct sample *unseen = ARENA_NEW(&arena, struct sample, judged->n_ranks);
    struct evaluation evaluation;
    size_t n_seen = judged->n_cases, n_unseen = 0;
    struct model model;
    int rc;

    memcpy(seen, judged->cases, n_seen * sizeof(*seen));
    for (size_t i = 0; i < judged->n_ranks; i++)
        if (strcmp(list_of(judged, &judged->ranks[i]), list) != 0)
            seen[n_seen++] = judged->ranks[i];
        else
            unseen[n_unseen++] = judged->ranks[i];
    rc = train_fit(&model, seen, n_seen, options, &arena, err);
    if (!rc) {
        evaluate_model(&evaluation, &model, seen, n_seen);
        evaluation_store(&model, &evaluation);
        judge(judged, list, &model, unseen, n_unseen, tally, &arena);
    }
    arena_release(&arena);
    return rc;
}

int main(int argc, char **argv)
{
    struct train_options options;
    struct judged judged = {0};
    struct tally tally = {0};
    struct arena arena = {0};
    struct err err = {0};
    const char *kind = argc > 1 ? argv[1] : "monotone";

    train_options_init(&options);
    options.kind = !strcmp(kind, "roofline")       ? MODEL_ROOFLINE
                   : !strcmp(kind, "net")          ? MODEL_NET
                   : !strcmp(kind, "roofline-net") ? MODEL_ROOFLINE_NET
                                                   : MODEL_MONOTONE;
    if (read_plans(&judged, data_path(PLANS, &arena)) || gemm_init(&err) ||
        read_samples(&judged.cases, &judged.n_cases, data_path(CASES, &arena),
                     &arena, &err) ||
        read_samples(&judged.ranks, &judged.n_ranks, data_path(RANKS, &arena),
                     &arena, &err) ||
        !judged.n_cases || !judged.n_ranks) {
        fprintf(stderr, "bench_ranks: %s\n",
                *err.msg ? err.msg : "the data folder has no measurements");
        return 1;
    }
    tally.apes = ARENA_NEW(&arena, double, judged.n_ranks);
    printf("ranks of a list that the %s never saw\n%-32s %6s %7s %8s %8s %9s "
           "%8s\n",
           kind, "list", "ranks", "mean %", "median %", "bias", "inside %",
           "regret %");
    for (size_t p = 0; p < judged.n_plans; p++) {
        const char *list = judged.plans[p].list;

        if (p && !strcmp(list, judged.plans[p - 1].list))
            continue;
        if (leave_out(&judged, list, &options, &tally, &err)) {
            fprintf(stderr, "bench_ranks: %s\n", err.msg);
            return 1;
        }
    }
    printf("%-32s %6zu %7.2f %8.2f %8s %9.1f\n", "all", tally.n,
           100 * stats_mean(tally.apes, tally.n),
           100 * stats_median(tally.apes, tally.n), "",
           100 * (double)tally.n_within / (double)tally.n);
    arena_release(&arena);
    return 0;
}
