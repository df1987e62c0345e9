/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/rng.h"
#include "base/stats.h"
#include "core/plan_check.h"
#include "costmodel/oracles.h"
#include "exec/exec.h"
#include "io/tables_io.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Predicted against executed: 20 random plans of real lists, at their full
 * size, on 4 and 8 ranks, priced by a measured cost model and run on this
 * machine: on two threads at batch 4,096, or on a GPU at batch 65,536. Every
 * plan is also compared with the unsharded reference. A plan that fails is
 * said and left out; the status is 0 where none failed.
 *
 *     bench_execute [--device cpu|cuda] [--seconds S]
 *                   [--plans N] [--batch B] [--max-rows R] [MODEL]
 *
 * MODEL is by default the shipped one of a CPU; a GPU's has to be named. No
 * plan is begun once S seconds are over. Fewer plans, another batch and tables
 * that are cut to R rows are for a look at whether it works.
 */

#define SHIPPED_MODEL "data/models/cpu-amd-epyc-2t.nsm"
#define N_PLANS 20
#define MAX_PIECES 512
#define N_ITERATIONS 20

static const char *const lists[] = {"data/tables/criteo_kaggle_26.csv",
                                    "data/tables/nvidia_synthetic_tiny_v3.csv"};

/* Where and how the plans are run. */
struct setup {
    const char *model;
    struct world *world;
    struct device *device;
    enum device_kind kind;
    uint32_t batch, max_rows;
    uint32_t n_plans; /* 1 .. N_PLANS */
    double end_ms;
};

struct outcome {
    double predicted_ms, measured_ms; /* compute of the slowest rank */
    double output_error, weight_error;
};

/* A third of the wide tables are cut in columns at a random multiple of 4. */
static void draw_shards(struct plan *plan, struct shard *shards,
                        struct rng *rng)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;

    plan->shards = shards;
    plan->n_shards = 0;
    for (uint32_t t = 0; t < plan->problem.n_tables; t++) {
        uint32_t dim = plan->problem.tables[t].dim, cut = 0;
        struct shard *shard = &shards[plan->n_shards++];

        *shard =
            shard_whole(&plan->problem, t, (uint32_t)rng_below(rng, n_devices));
        if (dim >= 8 && rng_below(rng, 3) == 0)
            cut = 4 * (uint32_t)(1 + rng_below(rng, dim / 4 - 1));
        if (!cut)
            continue;
        shards[plan->n_shards] = *shard;
        shards[plan->n_shards].device = (uint32_t)rng_below(rng, n_devices);
        shards[plan->n_shards++].col_begin = cut;
        shard->col_end = cut;
    }
    plan_derive_kinds(plan);
}

static void fill_problem(struct problem *problem, struct table_list *list,
                         uint32_t n_devices, const struct setup *setup,
                         struct arena *arena)
{
    for (uint32_t t = 0; t < list->n_tables; t++)
        if (list->tables[t].num_embeddings > setup->max_rows)
            list->tables[t].num_embeddings = setup->max_rows;
    *problem = (struct problem){
        .tables = list->tables,
        .n_tables = list->n_tables,
        .cluster = {.n_devices = n_devices,
                    .devices_per_host = n_devices,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, n_devices),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, n_devices)},
        .batch = setup->batch,
        .kinds = SHARD_ALL_KINDS,
    };
    for (uint32_t r = 0; r < n_devices; r++)
        problem->cluster.memory_bytes[r] = (uint64_t)80 << 30;
}

static double slowest_predicted(const struct plan *plan)
{
    double slowest = 0;

    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++)
        slowest = fmax(slowest, plan->devices[r].compute_ms);
    return slowest;
}

static double slowest_measured(const struct plan *plan,
                               const struct exec_result *result)
{
    double slowest = 0;

    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++)
        slowest = fmax(slowest, result->ranks[r].compute.median_ms);
    return slowest;
}

static int run_plan(struct outcome *outcome, const struct setup *setup,
                    unsigned number, struct err *err)
{
    struct shard shards[MAX_PIECES];
    struct tables_options options = {0};
    struct exec_options exec_options;
    struct exec_result result;
    struct table_list list;
    struct plan plan = {0};
    struct arena arena;
    struct rng rng;
    int rc = -1;

    arena_init(&arena);
    rng_init(&rng, number, 0);
    if (tables_load(&list, lists[number % 2], &options, &arena, err))
        goto out;
    fill_problem(&plan.problem, &list, number / 2 % 2 ? 8 : 4, setup, &arena);
    draw_shards(&plan, shards, &rng);
    if (oracle_price_plan(&plan, arena_printf(&arena, "model:%s", setup->model),
                          &arena, err) ||
        plan_check(&plan, err))
        goto out;
    exec_options_init(&exec_options);
    exec_options.n_iterations = N_ITERATIONS;
    exec_options.seed = number;
    if (exec_run(&result, &plan, setup->world, setup->device, &exec_options,
                 &arena, err))
        goto out;
    if (result.failure) {
        err_set(err, ERR_INPUT, "plan %u: %s", number, result.failure);
        goto out;
    }
    *outcome = (struct outcome){slowest_predicted(&plan),
                                slowest_measured(&plan, &result),
                                result.outputs.error, result.weights.error};
    printf("%4u  %-26.26s %5u %7zu %12.3f %11.3f %+8.1f %9.1g %9.1g\n", number,
           strrchr(lists[number % 2], '/') + 1, plan.problem.cluster.n_devices,
           plan.n_shards, outcome->predicted_ms, outcome->measured_ms,
           100 * (outcome->predicted_ms / outcome->measured_ms - 1),
           outcome->output_error, outcome->weight_error);
    fflush(stdout);
    rc = 0;
out:
    arena_release(&arena);
    return rc;
}

static int read_number(uint32_t *out, const char *text, uint32_t max,
                       struct err *err)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*end || !n || n > max)
        return err_set(err, ERR_USAGE, "'%s' is no number from 1 to %" PRIu32,
                       text, max);
    *out = (uint32_t)n;
    return 0;
}

static int read_device(struct setup *setup, const char *kind, struct err *err)
{
    if (strcmp(kind, "cpu") != 0 && strcmp(kind, "cuda") != 0)
        return err_set(err, ERR_USAGE, "--device takes cpu or cuda");
    setup->kind = strcmp(kind, "cuda") ? DEVICE_CPU : DEVICE_CUDA;
    return 0;
}

static int read_option(struct setup *setup, int option, const char *value,
                       struct err *err)
{
    uint32_t seconds = 0;

    switch (option) {
    case 'd':
        return read_device(setup, value, err);
    case 'p':
        return read_number(&setup->n_plans, value, N_PLANS, err);
    case 'b':
        return read_number(&setup->batch, value, 1 << 24, err);
    case 'r':
        return read_number(&setup->max_rows, value, UINT32_MAX, err);
    case 's':
        if (read_number(&seconds, value, 1 << 20, err))
            return -1;
        setup->end_ms = clock_ms() + 1e3 * seconds;
        return 0;
    default:
        return err_set(err, ERR_USAGE,
                       "the options are --device, --seconds, --plans, --batch "
                       "and --max-rows");
    }
}

static int read_arguments(struct setup *setup, int argc, char **argv,
                          struct err *err)
{
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'},
        {"plans", required_argument, NULL, 'p'},
        {"batch", required_argument, NULL, 'b'},
        {"max-rows", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {0},
    };
    int option;

    *setup = (struct setup){
        .n_plans = N_PLANS, .max_rows = UINT32_MAX, .end_ms = INFINITY};
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (read_option(setup, option, optarg, err))
            return -1;
    if (!setup->batch)
        setup->batch = setup->kind == DEVICE_CUDA ? 65536 : 4096;
    setup->model = optind < argc ? argv[optind] : SHIPPED_MODEL;
    if (optind == argc && setup->kind == DEVICE_CUDA)
        return err_set(err, ERR_USAGE, "--device cuda needs the GPU's MODEL");
    return 0;
}

static void print_summary(const struct setup *setup,
                          const struct outcome *outcomes, uint32_t n,
                          uint32_t n_failed)
{
    double errors[N_PLANS], predicted[N_PLANS], measured[N_PLANS], tau;

    for (uint32_t i = 0; i < n; i++) {
        predicted[i] = outcomes[i].predicted_ms;
        measured[i] = outcomes[i].measured_ms;
        errors[i] = fabs(predicted[i] / measured[i] - 1);
    }
    tau = stats_kendall_tau(predicted, measured, n);
    printf("\nplans           %" PRIu32 " of %" PRIu32 " executed", n,
           setup->n_plans);
    if (n_failed)
        printf(", %" PRIu32 " failed", n_failed);
    printf("\n");
    if (n)
        printf("slowest rank    predicted against measured compute: median "
               "error %.1f %%, p90 %.1f %%\n"
               "order           Kendall's tau %.3f, %.0f %% of pairs of plans "
               "as predicted\n",
               100 * stats_median(errors, n),
               100 * stats_quantile(errors, n, 0.9), tau, 50 * (1 + tau));
}

/* 0 where all plans ran, or all that time was left for. */
static int run_plans(const struct setup *setup)
{
    struct outcome outcomes[N_PLANS];
    uint32_t n = 0, n_failed = 0;

    for (unsigned i = 0; i < setup->n_plans && clock_ms() < setup->end_ms;
         i++) {
        struct err err = {0};

        if (run_plan(&outcomes[n], setup, i, &err)) {
            printf("%4u  failed: %s\n", i, err.msg);
            n_failed++;
            continue;
        }
        n++;
    }
    print_summary(setup, outcomes, n, n_failed);
    return n_failed || !n ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct setup setup;
    struct err err = {0};
    int status = 1;

    if (read_arguments(&setup, argc, argv, &err) ||
        world_open(&setup.world, &err) ||
        device_open(&setup.device, setup.kind, 0, 2, &err)) {
        fprintf(stderr, "bench_execute: %s\n", err.msg);
        goto out;
    }
    printf("slowest rank's compute, predicted by %s and measured on %s, "
           "batch %u\n\nplan  tables                     ranks  pieces "
           "predicted ms measured ms  error %%   outputs   weights\n",
           setup.model, setup.device->facts.name, setup.batch);
    status = run_plans(&setup) ? 1 : 0;
out:
    device_close(setup.device);
    world_close(setup.world);
    return status;
}
