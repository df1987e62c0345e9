/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/rng.h"
#include "base/stats.h"
#include "core/plan_check.h"
#include "core/plan_error.h"
#include "costmodel/formulas/interval.h"
#include "costmodel/models/oracle_open.h"
#include "exec/exec.h"
#include "exec/input.h"
#include "exec/placement_load.h"
#include "io/tables_io.h"
#include "tests/processes.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Compares predicted with executed times. 20 random plans of real lists, at
 * full size, on 4 and 8 ranks, are priced by a measured cost model and run on
 * this machine: on two threads with batch 4,096, or on a GPU with batch 65,536.
 * Every plan is also compared with the unsharded reference. The errors that the
 * model predicts are compared with the measured errors. A plan that fails is
 * reported and left out. The status is 0 if no plan failed.
 *
 * Then 20 plans each run on two and on four processes of one thread, some with
 * rows cut in order of frequency. The predictions of these figures are compared
 * with measurements:
 *
 * - the exchange of ids, predicted by the model and by the formulas for a CPU
 * - the rank that is slowest
 * - the gain of lookups with their exchange in chunks, compared with one chunk
 * - the gain of steps with de-duplicated sessions, compared with the whole
 *   batch; all tables have the same share of unique samples
 *
 * A factor in the output scales predictions from the machine that they were
 * made for to this machine. The fastest twentieth of 300 exchanges counts,
 * because processes that wait for each other suffer most from other load.
 *
 *     bench_execute [--device cpu|cuda] [--seconds S] [--first I]
 *                   [--plans N] [--batch B] [--max-rows R]
 *                   [--measured FILE] [MODEL]
 *
 * MODEL is by default the shipped one of a CPU; for a GPU it must be given. No
 * plan is started after S seconds. Use up to 300 plans, from plan I on, to
 * judge the errors that the model predicts. Fewer plans, another batch, or
 * tables cut to R rows only show whether execution works.
 *
 * The speed of a machine that shares caches and memory with others drifts over
 * minutes. On such a machine, alternate between measuring samples and plans, so
 * that both see the same conditions. FILE then contains the concatenated output
 * of earlier runs; its plans are priced by MODEL and not executed again.
 */

#define SHIPPED_MODEL "data/models/cpu-amd-epyc-2t.nsm"
#define N_PLANS 20 /* default; also the most plans of steps */
#define MOST_PLANS 300
#define MAX_PIECES 512
#define N_ITERATIONS 20

static const char *const lists[] = {"data/tables/criteo_kaggle_26.csv",
                                    "data/tables/nvidia_synthetic_tiny_v3.csv"};

/* How and where the plans run. */
struct setup {
    const char *model;
    struct world *world;
    struct device *device;
    enum device_kind kind;
    uint32_t batch, max_rows;
    uint32_t first;       /* first plan, 0 .. MOST_PLANS - 1 */
    uint32_t n_plans;     /* 1 .. MOST_PLANS - first */
    const char *measured; /* output of earlier runs; NULL: execute plans */
    double end_ms;
};

struct outcome {
    double predicted_ms, measured_ms; /* compute of the slowest rank */
    double output_error, weight_error;
    double error_frac; /* predicted error */
    /* other load disturbed at least one rank */
    bool is_disturbed;
};

/* Draws a plan. A third of the wide tables are cut in columns, at a random
 * multiple of 4. */
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
    problem_find_hot_rows(problem, arena);
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

/* Reads the measured figures of a plan from the output of an earlier run. */
static int find_measured(struct outcome *outcome, const char *path,
                         unsigned number, struct err *err)
{
    FILE *file = fopen(path, "r");
    char line[256], list[64];
    unsigned n, n_ranks, n_pieces;
    double predicted_ms;
    bool is_found = false;

    while (file && !is_found && fgets(line, sizeof(line), file)) {
        is_found =
            sscanf(line, "%u %63s %u %u %lf %lf", &n, list, &n_ranks, &n_pieces,
                   &predicted_ms, &outcome->measured_ms) == 6 &&
            n == number;
        outcome->is_disturbed = strstr(line, "disturbed") != NULL;
    }
    if (file)
        fclose(file);
    return is_found ? 0
                    : err_set(err, ERR_INPUT, "plan %u is not in '%s'", number,
                              path);
}

static int execute(struct outcome *outcome, const struct plan *plan,
                   const struct setup *setup, unsigned number,
                   struct arena *arena, struct err *err)
{
    struct exec_options options;
    struct exec_result result;

    if (setup->measured)
        return find_measured(outcome, setup->measured, number, err);
    exec_options_init(&options);
    options.n_iterations = N_ITERATIONS;
    options.seed = number;
    if (exec_run(&result, plan, setup->world, setup->device, &options, arena,
                 err))
        return -1;
    if (result.failure)
        return err_set(err, ERR_INPUT, "plan %u: %s", number, result.failure);
    *outcome = (struct outcome){.measured_ms = slowest_measured(plan, &result),
                                .output_error = result.outputs.error,
                                .weight_error = result.weights.error,
                                .is_disturbed = result.n_disturbed > 0};
    return 0;
}

static int run_plan(struct outcome *outcome, const struct setup *setup,
                    unsigned number, struct err *err)
{
    struct shard shards[MAX_PIECES];
    struct tables_options options = {0};
    struct table_list list;
    struct plan plan = {0};
    struct arena arena = {0};
    struct rng rng;
    int rc = -1;

    *outcome = (struct outcome){.measured_ms = NAN};
    rng_init(&rng, number, 0);
    if (tables_load(&list, lists[number % 2], &options, &arena, err))
        goto out;
    fill_problem(&plan.problem, &list, number / 2 % 2 ? 8 : 4, setup, &arena);
    draw_shards(&plan, shards, &rng);
    if (oracle_price_plan(&plan, arena_printf(&arena, "model:%s", setup->model),
                          &arena, err) ||
        plan_check(&plan, err) ||
        execute(outcome, &plan, setup, number, &arena, err))
        goto out;
    outcome->predicted_ms = slowest_predicted(&plan);
    outcome->error_frac = plan.cost.lookup_error.frac;
    printf("%4u  %-26.26s %5u %7zu %12.3f %11.3f %+8.1f %6.1f %9.1g %9.1g%s\n",
           number, strrchr(lists[number % 2], '/') + 1,
           plan.problem.cluster.n_devices, plan.n_shards, outcome->predicted_ms,
           outcome->measured_ms,
           100 * (outcome->predicted_ms / outcome->measured_ms - 1),
           100 * outcome->error_frac, outcome->output_error,
           outcome->weight_error, outcome->is_disturbed ? "  disturbed" : "");
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
    case 'f':
        return read_number(&setup->first, value, MOST_PLANS - 1, err);
    case 'm':
        setup->measured = value;
        return 0;
    case 'p':
        return read_number(&setup->n_plans, value, MOST_PLANS, err);
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
                       "the options are --device, --seconds, --first, --plans, "
                       "--batch, --max-rows and --measured");
    }
}

static int read_arguments(struct setup *setup, int argc, char **argv,
                          struct err *err)
{
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'},
        {"first", required_argument, NULL, 'f'},
        {"measured", required_argument, NULL, 'm'},
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
    if (setup->n_plans > MOST_PLANS - setup->first)
        setup->n_plans = MOST_PLANS - setup->first;
    if (!setup->batch)
        setup->batch = setup->kind == DEVICE_CUDA ? 65536 : 4096;
    setup->model = optind < argc ? argv[optind] : SHIPPED_MODEL;
    if (optind == argc && setup->kind == DEVICE_CUDA)
        return err_set(err, ERR_USAGE, "--device cuda needs the GPU's MODEL");
    return 0;
}

/* Prints how many measured times are within the predicted error, and how many
 * pairs of plans are in the right order. Counts pairs whose predictions differ
 * by more than the error of a difference. also_disturbed: count all plans,
 * otherwise only those without other load. */
static void print_extrapolation(const char *which,
                                const struct outcome *outcomes, uint32_t n,
                                bool also_disturbed)
{
    uint32_t n_judged = 0, n_within = 0, n_pairs = 0, n_right = 0;

    for (const struct outcome *a = outcomes; a < outcomes + n; a++) {
        if (a->is_disturbed && !also_disturbed)
            continue;
        n_judged++;
        n_within +=
            interval_error(a->measured_ms, a->predicted_ms) <= a->error_frac;
        for (const struct outcome *b = outcomes; b < a; b++) {
            if ((b->is_disturbed && !also_disturbed) ||
                interval_error(a->predicted_ms, b->predicted_ms) <=
                    RATIO_ERROR_SHARE * fmax(a->error_frac, b->error_frac))
                continue;
            n_pairs++;
            n_right += (a->predicted_ms < b->predicted_ms) ==
                       (a->measured_ms < b->measured_ms);
        }
    }
    printf("%-15s %" PRIu32 " of %" PRIu32 " slowest ranks within the error "
           "that is said, %" PRIu32 " of %" PRIu32
           " pairs that differ by more than that of a difference in order\n",
           which, n_within, n_judged, n_right, n_pairs);
}

static void print_summary(const struct setup *setup,
                          const struct outcome *outcomes, uint32_t n,
                          uint32_t n_failed)
{
    double errors[MOST_PLANS] = {0}, predicted[MOST_PLANS] = {0};
    double measured[MOST_PLANS] = {0}, tau;

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
    print_extrapolation("all", outcomes, n, true);
    print_extrapolation("undisturbed", outcomes, n, false);
}

/* --- steps of several processes --- */

#define MAX_STEP_RANKS 16
#define STEP_MAX_ROWS 100000
#define N_STEP_ITERATIONS 12
#define N_BATCHES 7 /* exchanged in turns */
#define N_EXCHANGES 300
#define QUIET 0.05 /* fastest share of the exchanges that counts */
#define MIN_GAIN 0.05

#define N_TURNS 3 /* repetitions of a step with and without de-duplication */

enum { BY_MODEL, BY_FORMULAS, N_PREDICTED };
enum { OF_CHUNKS, OF_DEDUP, N_GAINS };

struct step_outcome {
    double input_ms[N_PREDICTED], measured_input_ms;
    double work_ms, measured_work_ms; /* work of the slowest rank */
    uint32_t slowest, measured_slowest;
    double margin; /* predicted lead of the slowest rank over the next */
    double gains[N_GAINS], measured_gains[N_GAINS];
};

/* Draws a plan of steps. Every fourth table is cut by rows over all ranks,
 * hottest rows first. Some of the other tables are cut by columns. */
static void draw_step(struct plan *plan, struct table_list *list,
                      struct shard *shards, struct rng *rng,
                      struct arena *arena)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    size_t n = 0;

    for (uint32_t t = 0; t < list->n_tables; t++) {
        struct table *table = &list->tables[t];

        table->pooling_factor = (double)(1 + rng_below(rng, 12));
        table->zipf_alpha = 1.05;
        table->has_bins = false;
        table->row_order = ROW_ORDER_FREQUENCY;
    }
    draw_shards(plan, shards, rng);
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard shard = shards[i];
        uint64_t n_rows = shard.row_end;

        if (shard.kind != SHARD_TABLE || n_rows < 1000 || rng_below(rng, 4))
            continue;
        for (uint32_t r = 0; r < n_devices; r++) {
            struct shard *block =
                r ? &shards[plan->n_shards + n++] : &shards[i];

            *block = shard;
            block->device = r;
            block->row_begin = r * ((n_rows + n_devices - 1) / n_devices);
            block->row_end =
                block->row_begin + (n_rows + n_devices - 1) / n_devices;
            if (block->row_end > n_rows)
                block->row_end = n_rows;
        }
    }
    plan->n_shards += n;
    plan_derive_kinds(plan);
    problem_find_hot_rows(&plan->problem, arena);
}

/* Predicts the plan's phases, and its step in chunks, by the cost model. */
static int predict_step(const char *spec, const struct plan *plan,
                        double (*phases_ms)[N_PHASES], struct step *step,
                        struct arena *arena, struct err *err)
{
    const size_t n_ranks = plan->problem.cluster.n_devices;
    struct oracle *oracle;
    double *vectors, *sums, *compute_ms;

    if (oracle_open(&oracle, spec, &plan->problem, arena, err))
        return -1;
    vectors = ARENA_NEW(arena, double, plan->n_shards * oracle->width);
    sums = ARENA_NEW(arena, double, n_ranks * oracle->width);
    compute_ms = ARENA_NEW(arena, double, n_ranks);
    oracle->ops->embed(oracle, plan->shards, plan->n_shards, vectors);
    oracle_add_shards(oracle, plan->shards, vectors, plan->n_shards, 1, sums);
    oracle->ops->compute(oracle, sums, n_ranks, compute_ms);
    oracle->ops->phases(oracle, sums, compute_ms, phases_ms);
    *step = *oracle->step;
    return 0;
}

static double look_up_ms(struct step step, uint32_t n_chunks, uint32_t n_ranks,
                         const double (*phases_ms)[N_PHASES])
{
    double only_ms[MAX_STEP_RANKS][N_PHASES] = {0};

    step.pipeline = PIPELINE_NONE;
    step.n_chunks = n_chunks;
    for (uint32_t r = 0; r < n_ranks; r++) {
        only_ms[r][PHASE_FORWARD] = phases_ms[r][PHASE_FORWARD];
        only_ms[r][PHASE_OUTPUT] = phases_ms[r][PHASE_OUTPUT];
    }
    return step_of_ranks(&step, n_ranks, (const double(*)[N_PHASES])only_ms);
}

static double work_ms(const double phases_ms[N_PHASES])
{
    return phases_ms[PHASE_FORWARD] + phases_ms[PHASE_BACKWARD] +
           phases_ms[PHASE_UPDATE];
}

static void compare_step(struct step_outcome *outcome,
                         const struct exec_result *result, uint32_t n_ranks,
                         const double (*phases_ms)[N_PHASES])
{
    double next_ms = 0;

    for (uint32_t r = 0; r < n_ranks; r++) {
        double measured_ms = work_ms(result->ranks[r].phases_ms);
        double predicted_ms = work_ms(phases_ms[r]);

        if (measured_ms > outcome->measured_work_ms) {
            outcome->measured_work_ms = measured_ms;
            outcome->measured_slowest = r;
        }
        if (predicted_ms > outcome->work_ms) {
            next_ms = outcome->work_ms;
            outcome->work_ms = predicted_ms;
            outcome->slowest = r;
        } else if (predicted_ms > next_ms) {
            next_ms = predicted_ms;
        }
    }
    outcome->margin = 1 - next_ms / outcome->work_ms;
    outcome->measured_gains[OF_CHUNKS] =
        1 - result->in_chunks[1].median_ms / result->in_chunks[0].median_ms;
}

static int execute_step(struct exec_result *result, const struct setup *setup,
                        const struct plan *plan, const struct step *step,
                        unsigned number, struct arena *arena, struct err *err)
{
    struct exec_options options;

    exec_options_init(&options);
    options.n_iterations = N_STEP_ITERATIONS;
    options.seed = number;
    options.check = options.wait_for_quiet = false;
    options.step = *step;
    return exec_run(result, plan, setup->world, setup->device, &options, arena,
                    err);
}

/* Times a step with and without de-duplication, in turns. Phases run one after
 * the other. */
static int time_dedup(struct step_outcome *outcome, const struct setup *setup,
                      struct plan *plan, unsigned number, struct arena *arena,
                      struct err *err)
{
    const char *model = arena_printf(arena, "model:%s", setup->model);
    double predicted_ms[2], ms[2][N_TURNS];

    for (size_t t = 0; t < plan->problem.n_tables; t++)
        plan->problem.tables[t].dedup = 0.3 + 0.1 * (number % 5);
    plan->problem.job = (struct job){.pipeline = PIPELINE_NONE};
    for (unsigned i = 0; i < 2 * N_TURNS; i++) {
        double phases_ms[MAX_STEP_RANKS][N_PHASES];
        struct exec_result result;
        struct step step;

        plan->problem.job.dedup = i % 2 ? DEDUP_SESSIONS : DEDUP_NONE;
        problem_find_hot_rows(&plan->problem, arena);
        if (predict_step(model, plan, phases_ms, &step, arena, err) ||
            execute_step(&result, setup, plan, &step, number, arena, err))
            return -1;
        predicted_ms[i % 2] = step_of_ranks(
            &step, setup->world->size, (const double(*)[N_PHASES])phases_ms);
        ms[i % 2][i / 2] = result.total_ms;
    }
    outcome->gains[OF_DEDUP] = 1 - predicted_ms[1] / predicted_ms[0];
    outcome->measured_gains[OF_DEDUP] =
        1 - stats_median(ms[1], N_TURNS) / stats_median(ms[0], N_TURNS);
    return 0;
}

/* Times the exchange of the plan's ids by all processes. As in a step, the
 * batch was packed just before the exchange and is unpacked after it. Each
 * exchange takes another batch, so that the received ids are not cached yet. */
static int time_input(double *input_ms, const struct setup *setup,
                      const struct plan *plan, struct arena *arena,
                      struct err *err)
{
    const uint32_t rank = setup->world->rank;
    double ms[N_EXCHANGES];
    struct placement placement = {0};
    struct input batches[N_BATCHES] = {{0}};
    struct input_link link = {0};
    struct comm *comm = NULL;
    int rc = -1;

    if (comm_open(&comm, setup->world, setup->device, setup->world->size,
                  err) ||
        placement_init(&placement, plan, comm, 1, 0, arena, err) ||
        input_link_open(&link, &placement, setup->world, err))
        goto out;
    for (unsigned i = 0; i < N_BATCHES; i++)
        if (input_open(&batches[i], &placement, &link, i, err))
            goto out;
    for (unsigned i = 0; i < N_EXCHANGES; i++) {
        struct input *input = &batches[i % N_BATCHES];

        input_pack(input, rank);
        if (world_barrier(setup->world, err))
            goto out;
        ms[i] = clock_ms();
        if (input_exchange(input, err))
            goto out;
        ms[i] = clock_ms() - ms[i];
        input_permute(input, rank, NULL);
    }
    if (world_largest(setup->world, ms, N_EXCHANGES, err))
        goto out;
    *input_ms = stats_quantile(ms, N_EXCHANGES, QUIET);
    rc = 0;
out:
    for (unsigned i = 0; i < N_BATCHES; i++)
        input_close(&batches[i]);
    input_link_close(&link);
    placement_release(&placement);
    comm_close(comm);
    return rc;
}

static int run_step(struct step_outcome *outcome, const struct setup *setup,
                    unsigned number, struct err *err)
{
    double phases_ms[N_PREDICTED][MAX_STEP_RANKS][N_PHASES];
    const uint32_t n_ranks = setup->world->size;
    struct tables_options options = {0};
    struct exec_result result;
    struct table_list list;
    struct plan plan = {0};
    struct setup own = *setup;
    struct step steps[N_PREDICTED];
    struct arena arena = {0};
    struct rng rng;
    int rc = -1;

    rng_init(&rng, number, n_ranks);
    if (tables_load(&list, lists[number % 2], &options, &arena, err))
        goto out;
    if (own.max_rows > STEP_MAX_ROWS)
        own.max_rows = STEP_MAX_ROWS;
    own.batch = (setup->batch << rng_below(&rng, 3)) / 2;
    fill_problem(&plan.problem, &list, n_ranks, &own, &arena);
    plan.problem.job.n_chunks = 2U << number % 3;
    draw_step(&plan, &list,
              ARENA_NEW(&arena, struct shard, MAX_PIECES * n_ranks), &rng,
              &arena);
    if (predict_step(arena_printf(&arena, "model:%s", setup->model), &plan,
                     phases_ms[BY_MODEL], &steps[BY_MODEL], &arena, err) ||
        predict_step("roofline:cpu", &plan, phases_ms[BY_FORMULAS],
                     &steps[BY_FORMULAS], &arena, err) ||
        execute_step(&result, setup, &plan, &steps[BY_MODEL], number, &arena,
                     err))
        goto out;
    *outcome = (struct step_outcome){
        .gains[OF_CHUNKS] =
            1 - look_up_ms(steps[0], steps[0].n_chunks, n_ranks,
                           (const double(*)[N_PHASES])phases_ms[0]) /
                    look_up_ms(steps[0], 1, n_ranks,
                               (const double(*)[N_PHASES])phases_ms[0])};
    for (unsigned k = 0; k < N_PREDICTED; k++)
        outcome->input_ms[k] = phases_ms[k][0][PHASE_INPUT];
    compare_step(outcome, &result, n_ranks,
                 (const double(*)[N_PHASES])phases_ms[BY_MODEL]);
    if (time_input(&outcome->measured_input_ms, setup, &plan, &arena, err) ||
        time_dedup(outcome, setup, &plan, number, &arena, err))
        goto out;
    if (!setup->world->rank)
        printf("%4u %7" PRIu64 " %7zu %9.3f %9.3f %9.3f %8.3f %9.3f   %2u %2u "
               "%5.1f %3u %7.1f %7.1f   %.1f %7.1f %7.1f\n",
               number, plan.problem.batch, plan.n_shards, outcome->input_ms[0],
               outcome->input_ms[1], outcome->measured_input_ms,
               outcome->work_ms, outcome->measured_work_ms, outcome->slowest,
               outcome->measured_slowest, 100 * outcome->margin,
               steps[0].n_chunks, 100 * outcome->gains[OF_CHUNKS],
               100 * outcome->measured_gains[OF_CHUNKS],
               plan.problem.tables[0].dedup, 100 * outcome->gains[OF_DEDUP],
               100 * outcome->measured_gains[OF_DEDUP]);
    fflush(stdout);
    rc = 0;
out:
    arena_release(&arena);
    return rc;
}

/* Median relative error of the predictions times *factor. A *factor of NAN is
 * first set to the median ratio of measured to predicted. */
static double median_error(const double *predicted, const double *measured,
                           uint32_t n, double *factor)
{
    double ratios[N_PLANS];

    if (isnan(*factor)) {
        for (uint32_t i = 0; i < n; i++)
            ratios[i] = measured[i] / predicted[i];
        *factor = stats_median(ratios, n);
    }
    for (uint32_t i = 0; i < n; i++)
        ratios[i] = fabs(*factor * predicted[i] / measured[i] - 1);
    return stats_median(ratios, n);
}

static void print_errors(const char *what, const double *predicted,
                         const double *measured, uint32_t n)
{
    double as_is = 1, factor = NAN;
    double error = median_error(predicted, measured, n, &as_is);
    double scaled_error = median_error(predicted, measured, n, &factor);

    printf("%-30s median error %.1f %%, times %.2f %.1f %%\n", what,
           100 * error, factor, 100 * scaled_error);
}

static void print_gain(const char *what, const struct step_outcome *outcomes,
                       uint32_t n, unsigned k)
{
    uint32_t n_gains = 0, n_near = 0;

    for (uint32_t i = 0; i < n; i++) {
        const double gain = outcomes[i].gains[k];

        n_gains += gain > MIN_GAIN;
        n_near += gain > MIN_GAIN &&
                  fabs(outcomes[i].measured_gains[k] / gain - 1) <= 0.4;
    }
    printf("%-30s gain predicted above %.0f %%: %" PRIu32
           " plans, executed within 40 %% of it %" PRIu32 "\n",
           what, 100 * MIN_GAIN, n_gains, n_near);
}

static void print_steps(const struct step_outcome *outcomes, uint32_t n)
{
    double model[N_PLANS], formulas[N_PLANS], input[N_PLANS], factor = NAN;
    double work[N_PLANS], measured_work[N_PLANS], error;
    uint32_t n_told = 0, n_right = 0;

    for (uint32_t i = 0; i < n; i++) {
        model[i] = outcomes[i].input_ms[BY_MODEL];
        formulas[i] = outcomes[i].input_ms[BY_FORMULAS];
        input[i] = outcomes[i].measured_input_ms;
        work[i] = outcomes[i].work_ms;
        measured_work[i] = outcomes[i].measured_work_ms;
    }
    puts("");
    print_errors("input exchange, the model's", model, input, n);
    print_errors("input exchange, the formulas'", formulas, input, n);
    print_errors("slowest rank's work", work, measured_work, n);
    error = median_error(work, measured_work, n, &factor);
    for (uint32_t i = 0; i < n; i++) {
        const struct step_outcome *one = &outcomes[i];

        n_told += one->margin > error;
        n_right += one->margin > error && one->slowest == one->measured_slowest;
    }
    printf("slowest rank                   named in %" PRIu32 " of %" PRIu32
           " plans whose margin exceeds that error\n",
           n_right, n_told);
    print_gain("chunks", outcomes, n, OF_CHUNKS);
    print_gain("dedup of sessions", outcomes, n, OF_DEDUP);
}

/* Whether some process is out of time. All processes must agree. */
static int is_over(bool *over, const struct setup *setup, struct err *err)
{
    double late = clock_ms() >= setup->end_ms;

    if (world_largest(setup->world, &late, 1, err))
        return -1;
    *over = late > 0;
    return 0;
}

/* Body of one of several processes. */
static int be_process(const struct setup *setup)
{
    struct step_outcome outcomes[N_PLANS];
    long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct err err = {0};
    bool over = false;
    unsigned n = 0;

    if (!setup->world->rank)
        printf("\nsteps of %u processes on %ld processors%s\n\n"
               "                    ids, model  formulas  measured  work, "
               "model  measured  slowest, %%   chunks, %% measured   dedup, %% "
               "measured\n",
               setup->world->size, n_processors,
               setup->world->size > n_processors ? ", oversubscribed" : "");
    for (; n < setup->n_plans && !over; n++)
        if (run_step(&outcomes[n], setup, n, &err) ||
            is_over(&over, setup, &err)) {
            fprintf(stderr, "bench_execute: plan %u: %s\n", n, err.msg);
            return -1;
        }
    if (!setup->world->rank)
        print_steps(outcomes, n);
    return 0;
}

/* Runs plans of steps on 2 and on 4 processes, if this machine can. */
static int run_processes(const struct setup *setup, const char *program)
{
    const char *missing = processes_missing();
    char arguments[80];

    if (missing || setup->kind != DEVICE_CPU || setup->measured) {
        printf("\nno steps of several processes: %s\n",
               missing ? missing : "that is for CPUs, and executed");
        return 0;
    }
    snprintf(arguments, sizeof(arguments),
             "--plans %" PRIu32 " --batch %" PRIu32 " --max-rows %" PRIu32,
             setup->n_plans < N_PLANS ? setup->n_plans : N_PLANS, setup->batch,
             setup->max_rows);
    return processes_run(2, program, arguments) ||
           processes_run(4, program, arguments);
}

/* Returns 0 if all plans ran that the time allowed. */
static int run_plans(const struct setup *setup)
{
    struct outcome outcomes[MOST_PLANS];
    uint32_t n = 0, n_failed = 0;

    for (unsigned i = setup->first;
         i < setup->first + setup->n_plans && clock_ms() < setup->end_ms; i++) {
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
        device_open(&setup.device, setup.kind, 0, setup.world->size > 1 ? 1 : 2,
                    &err)) {
        fprintf(stderr, "bench_execute: %s\n", err.msg);
        goto out;
    }
    if (setup.world->size > 1) {
        status = be_process(&setup) ? 1 : 0;
        if (status)
            world_abort(setup.world, status);
        goto out;
    }
    printf("slowest rank's compute, predicted by %s and measured on %s, "
           "batch %u\n\nplan  tables                     ranks  pieces "
           "predicted ms measured ms  error %%  +/- %%   outputs   weights\n",
           setup.model, setup.device->facts.name, setup.batch);
    status = run_plans(&setup) || run_processes(&setup, argv[0]) ? 1 : 0;
out:
    device_close(setup.device);
    world_close(setup.world);
    return status;
}
