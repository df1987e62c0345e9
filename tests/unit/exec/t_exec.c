/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"

#include "exec/placement.h"
#include "exec/placement_load.h"
#include "exec/placement_need.h"
#include "exec_fixture.h"
#include "tests/tap.h"

static void quick_options(struct exec_options *options)
{
    exec_options_init(options);
    options->n_iterations = 1;
    options->seed = 7;
    options->wait_for_quiet = false;
}

static int run(struct fixture *fixture, struct exec_result *result,
               const struct exec_options *options, struct err *err)
{
    plan_derive_kinds(&fixture->plan);
    return exec_run(result, &fixture->plan, fixture->world, fixture->device,
                    options, &fixture->arena, err);
}

/* Runs the plan and tests that all results agree with the reference within
 * `limit`. */
static void run_and_check(struct fixture *fixture, struct exec_result *result,
                          double scale_rows, double limit, const char *what)
{
    struct exec_options options;
    struct err err = {0};
    const struct problem *problem = &fixture->plan.problem;
    uint64_t n_outputs = 0, n_samples = problem->batch;

    if (problem->job.dedup == DEDUP_SESSIONS)
        n_samples =
            (uint64_t)ceil(fixture->tables[0].dedup * (double)n_samples);
    quick_options(&options);
    options.scale_rows = scale_rows;
    if (run(fixture, result, &options, &err)) {
        ok(0, "%s: %s", what, err.msg);
        return;
    }
    for (size_t t = 0; t < problem->n_tables; t++)
        n_outputs += n_samples * fixture->tables[t].dim *
                     (uint64_t)fixture->tables[t].num_outputs;
    ok(!result->failure, "%s agrees with the reference%s%s", what,
       result->failure ? ": " : "", result->failure ? result->failure : "");
    ok(result->outputs.error <= limit && result->weights.error <= limit,
       "%s: errors of outputs %.2g and of weights %.2g are within %g", what,
       result->outputs.error, result->weights.error, limit);
    is_i64((int64_t)result->outputs.n, (int64_t)n_outputs,
           "... and every output was compared");
}

static void test_table_wise(uint32_t n_ranks, enum optimizer optimizer)
{
    struct fixture fixture;
    struct exec_result result = {0};
    char what[64];

    fixture_init(&fixture, n_ranks, 256);
    for (uint32_t i = 0; i < 5; i++) {
        struct table *table = add_table(
            &fixture, &"abcde"[i], 1000 * (i + (uint64_t)1), 16 + 4 * i, 3);

        table->optimizer = optimizer;
        add_whole(&fixture, i * i % n_ranks);
    }
    snprintf(what, sizeof(what), "table-wise on %u, %s", n_ranks,
             optimizer_names[optimizer]);
    run_and_check(&fixture, &result, 1, 1e-5, what);
    ok(result.weights.n > 1000, "... with %llu weights",
       (unsigned long long)result.weights.n);
    fixture_release(&fixture);
}

static void test_column_wise(enum optimizer optimizer)
{
    struct fixture fixture;
    struct exec_result result = {0};

    fixture_init(&fixture, 4, 512);
    add_table(&fixture, "uneven", 5000, 128, 4)->optimizer = optimizer;
    add_columns(&fixture, 3, 0, 64);
    add_columns(&fixture, 0, 64, 96);
    add_columns(&fixture, 1, 96, 128);
    add_table(&fixture, "twins", 700, 64, 20)->optimizer = optimizer;
    add_columns(&fixture, 0, 0, 4); /* two pieces on one rank */
    add_columns(&fixture, 0, 4, 64);
    run_and_check(&fixture, &result, 1, 1e-5, "64 + 32 + 32 columns");
    ok(result.ranks[2].compute.median_ms == 0 &&
           result.costs[2].fwd_comm_ms > 0,
       "a rank without a shard computes nothing and waits");
    fixture_release(&fixture);
}

static void test_row_wise(void)
{
    struct fixture fixture;
    struct exec_result result = {0};

    fixture_init(&fixture, 4, 256);
    add_table(&fixture, "rows", 10000, 32, 5);
    add_rows(&fixture, 0, 0, 2500);
    add_rows(&fixture, 1, 2500, 2501); /* a row that is hardly ever looked up */
    add_rows(&fixture, 3, 2501, 10000);
    add_table(&fixture, "grid", 999, 24, 7);
    for (uint32_t i = 0; i < 4; i++) {
        struct shard *shard =
            add_rows(&fixture, i, i / 2 ? 500 : 0, i / 2 ? 999 : 500);

        shard->col_begin = i % 2 ? 16 : 0;
        shard->col_end = i % 2 ? 24 : 16;
    }
    run_and_check(&fixture, &result, 1, 1e-5, "rows and a grid");
    fixture_release(&fixture);
}

/* Half of the samples belong to sessions of other samples. */
static void test_sessions(void)
{
    struct fixture fixture;
    struct exec_result result;

    fixture_init(&fixture, 4, 258);
    add_table(&fixture, "rows", 10000, 32, 5)->dedup = 0.5;
    add_rows(&fixture, 0, 0, 2500);
    add_rows(&fixture, 1, 2500, 10000);
    add_table(&fixture, "copied", 5000, 16, 6)->dedup = 0.5;
    add_replicas(&fixture);
    run_and_check(&fixture, &result, 1, 1e-5, "all samples");
    fixture.plan.problem.job.dedup = DEDUP_SESSIONS;
    run_and_check(&fixture, &result, 1, 1e-5, "sessions alone");
    fixture_release(&fixture);
}

static void test_replicated(enum optimizer optimizer, uint32_t n_ranks)
{
    struct fixture fixture;
    struct exec_result result = {0};

    fixture_init(&fixture, n_ranks, 130);
    add_table(&fixture, "small", 1, 8, 2)->optimizer = optimizer;
    add_replicas(&fixture);
    add_table(&fixture, "copied", 5000, 16, 6)->optimizer = optimizer;
    add_replicas(&fixture);
    add_table(&fixture, "whole", 400, 12, 3)->optimizer = optimizer;
    add_whole(&fixture, n_ranks - 1);
    run_and_check(&fixture, &result, 1, 1e-5, "replicas");
    for (uint32_t r = 0; r < n_ranks; r++)
        if (!(result.ranks[r].phases_ms[PHASE_UPDATE] > 0))
            ok(0, "rank %u takes no time to update replicas", r);
    fixture_release(&fixture);
}

/* Gradients and dense sums that are larger than one transfer. */
static void test_chunks(void)
{
    struct fixture fixture;
    struct exec_result result = {0};

    const double n_rows = 70000, n_lookups = 40000;
    double n_weights = 300 * 256; /* each row is looked up */

    fixture_init(&fixture, 2, (uint64_t)n_lookups);
    add_table(&fixture, "wide", 300, 256, 1)->zipf_alpha = 0;
    add_whole(&fixture, 0);
    add_table(&fixture, "copied", (uint64_t)n_rows, 64, 1)->zipf_alpha = 0;
    add_replicas(&fixture);
    run_and_check(&fixture, &result, 1, 1e-5, "chunks");
    n_weights += 2 * 64 * n_rows * (1 - exp(-n_lookups / n_rows));
    is_near((double)result.weights.n, n_weights, 0.02 * n_weights,
            "... and every weight that is looked up");
    fixture_release(&fixture);
}

static void test_one_row(void)
{
    struct fixture fixture;
    struct exec_result result = {0};

    fixture_init(&fixture, 3, 10);
    add_table(&fixture, "one", 1, 8, 2);
    add_replicas(&fixture);
    add_table(&fixture, "never", 5, 8, 0);
    add_whole(&fixture, 1);
    run_and_check(&fixture, &result, 1, 1e-5, "a table of one row");
    is_i64((int64_t)result.weights.n, 3 * 8,
           "... whose row was compared on three ranks");
    fixture_release(&fixture);
}

static void test_poolings(void)
{
    struct fixture fixture;
    struct exec_result result = {0};

    fixture_init(&fixture, 8, 509); /* not a multiple of 8 */
    add_table(&fixture, "none", 1000, 16, 0);
    add_whole(&fixture, 5);
    add_table(&fixture, "rare", 1000, 16, 0.3);
    add_whole(&fixture, 5);
    add_table(&fixture, "fraction", 1000, 16, 2.7);
    add_columns(&fixture, 6, 0, 8);
    add_columns(&fixture, 7, 8, 16);
    add_table(&fixture, "unused", 1000, 16, 0)->num_outputs = 0;
    add_whole(&fixture, 0);
    run_and_check(&fixture, &result, 1, 1e-5, "pooling 0, 0.3 and 2.7");
    fixture_release(&fixture);
}

static void test_outputs(void)
{
    struct fixture fixture;
    struct exec_result result = {0};

    fixture_init(&fixture, 3, 200);
    add_table(&fixture, "plain", 600, 8, 3);
    add_whole(&fixture, 0);
    add_table(&fixture, "two", 800, 16, 11)->num_outputs = 2;
    add_columns(&fixture, 0, 0, 12);
    add_columns(&fixture, 1, 12, 16);
    add_table(&fixture, "two rows", 800, 16, 5)->num_outputs = 2;
    add_rows(&fixture, 0, 0, 400);
    add_rows(&fixture, 2, 400, 800);
    add_table(&fixture, "three", 500, 8, 6)->num_outputs = 3;
    add_replicas(&fixture);
    run_and_check(&fixture, &result, 1, 1e-5, "one, two and three outputs");
    fixture_release(&fixture);
}

static void test_fp16(enum optimizer optimizer)
{
    struct fixture fixture;
    struct exec_result result = {0};

    fixture_init(&fixture, 4, 256);
    for (uint32_t i = 0; i < 3; i++) {
        struct table *table = add_table(&fixture, &"xyz"[i], 3000, 32, 4);

        table->precision = PRECISION_FP16;
        table->optimizer = optimizer;
        if (i == 0) {
            add_columns(&fixture, 0, 0, 20);
            add_columns(&fixture, 1, 20, 32);
        } else if (i == 1) {
            add_rows(&fixture, 2, 0, 1000);
            add_rows(&fixture, 3, 1000, 3000);
        } else {
            add_replicas(&fixture);
        }
    }
    run_and_check(&fixture, &result, 1, 2e-3, "fp16");
    ok(result.outputs.error < 1e-5,
       "... outputs are sums in fp32 of what is stored");
    fixture_release(&fixture);
}

static void test_comm_fp16(void)
{
    struct fixture fixture;
    struct exec_result result = {0};

    fixture_init(&fixture, 3, 200);
    add_table(&fixture, "half", 600, 8, 3)->comm_precision = PRECISION_FP16;
    add_whole(&fixture, 0);
    add_table(&fixture, "half rows", 600, 16, 5)->comm_precision =
        PRECISION_FP16;
    add_rows(&fixture, 0, 0, 200);
    add_rows(&fixture, 2, 200, 600);
    add_table(&fixture, "full", 600, 8, 3);
    add_columns(&fixture, 0, 0, 4);
    add_columns(&fixture, 1, 4, 8);
    add_table(&fixture, "half copies", 300, 8, 3)->comm_precision =
        PRECISION_FP16;
    add_replicas(&fixture);
    run_and_check(&fixture, &result, 1, 2e-3, "outputs exchanged in fp16");
    ok(result.outputs.error > 1e-5, "... are rounded");
    ok(result.weights.error < 1e-5,
       "... but weights follow from the gradients that arrive");
    fixture_release(&fixture);
}

/* Makes a plan with every kind of piece, on ranks of different sizes. Ranks 3
 * and 4 have only their replica. */
static void make_mixed(struct fixture *fixture, enum device_kind kind)
{
    fixture_init_on(fixture, kind, 5, 203);
    add_table(fixture, "columns", 3000, 32, 4);
    add_columns(fixture, 0, 0, 20);
    add_columns(fixture, 1, 20, 32);
    add_table(fixture, "rows", 5000, 16, 3);
    add_rows(fixture, 0, 0, 1000);
    add_rows(fixture, 2, 1000, 5000);
    add_table(fixture, "copies", 700, 8, 2);
    add_replicas(fixture);
    add_table(fixture, "twice", 900, 12, 6)->num_outputs = 2;
    add_whole(fixture, 0);
    add_table(fixture, "half", 900, 12, 1.5)->comm_precision = PRECISION_FP16;
    add_whole(fixture, 1);
}

static void run_mixed(struct exec_result *result, enum device_kind kind,
                      uint32_t n_chunks, uint64_t memory_bytes, uint64_t seed)
{
    struct fixture fixture;
    struct exec_options options;
    struct err err = {0};

    make_mixed(&fixture, kind);
    quick_options(&options);
    options.seed = seed;
    options.memory_bytes = memory_bytes;
    options.step.n_chunks = n_chunks;
    ok(!run(&fixture, result, &options, &err) && !result->failure,
       "a mixed plan, seed %d: %s%s", (int)seed, err.msg,
       result->failure ? result->failure : "");
    result->ranks = NULL;
    fixture_release(&fixture);
}

static void test_hashes(void)
{
    struct exec_result first = {0}, again = {0}, other = {0}, gpu = {0};

    run_mixed(&first, DEVICE_CPU, 1, 0, 7);
    run_mixed(&again, DEVICE_CPU, 1, 0, 7);
    run_mixed(&other, DEVICE_CPU, 1, 0, 8);
    ok(first.output_hash && first.weight_hash &&
           first.output_hash != first.weight_hash,
       "outputs and weights are hashed");
    ok(first.output_hash == again.output_hash &&
           first.weight_hash == again.weight_hash,
       "... the same way every time");
    ok(first.output_hash != other.output_hash &&
           first.weight_hash != other.weight_hash,
       "... and differ with the seed");
    if (!device_count(DEVICE_CUDA))
        return;
    run_mixed(&gpu, DEVICE_CUDA, 1, 0, 7);
    ok(first.output_hash == gpu.output_hash &&
           first.weight_hash == gpu.weight_hash,
       "a GPU has the same bits");
}

/* A chunk has different numbers of samples in each rank's part; some chunks are
 * empty. */
static void test_in_chunks(enum device_kind kind)
{
    static const uint32_t n_chunks[] = {2, 3, 8, 64};
    struct exec_result whole = {0}, chunks = {0};

    run_mixed(&whole, kind, 1, 0, 7);
    for (unsigned i = 0; i < sizeof(n_chunks) / sizeof(n_chunks[0]); i++) {
        run_mixed(&chunks, kind, n_chunks[i], 0, 7);
        ok(whole.output_hash == chunks.output_hash &&
               whole.weight_hash == chunks.weight_hash,
           "%u chunks have the bits of one", n_chunks[i]);
    }
}

/* The weights of all ranks take 1.1 MB, all other memory about 64 MB. */
static void test_turns(void)
{
    struct exec_result whole = {0}, turns = {0};
    unsigned n = 0;

    run_mixed(&whole, DEVICE_CPU, 1, 0, 7);
    is_i64(whole.n_turns, 1, "all weights are in memory together");
    for (uint64_t kib = 80000; kib > 60000 && n < 2; kib -= 16) {
        struct fixture fixture;
        struct placement placement;
        struct err err;

        make_mixed(&fixture, DEVICE_CPU);
        plan_derive_kinds(&fixture.plan);
        if (placement_init(&placement, &fixture.plan, fixture.comm, 1, 7,
                           &fixture.arena, &err))
            fixture_bail(&err);
        if (!placement_cut_turns(&placement, kib << 10, &err) &&
            placement.n_turns == n + 2) {
            n++;
            run_mixed(&turns, DEVICE_CPU, n, kib << 10, 7);
            is_i64(turns.n_turns, n + 1, "... or one after the other");
            ok(whole.output_hash == turns.output_hash &&
                   whole.weight_hash == turns.weight_hash,
               "... with the same bits");
        }
        placement_release(&placement);
        fixture_release(&fixture);
    }
    is_i64(n, 2, "two and three turns were tried");
}

/* Returns the time of a step composed from the ranks' phases, in ms. */
static double composed_ms(const struct exec_result *result, uint32_t n_ranks,
                          const struct step *step)
{
    double phases_ms[8][N_PHASES];

    for (uint32_t r = 0; r < n_ranks; r++)
        memcpy(phases_ms[r], result->ranks[r].phases_ms, sizeof(phases_ms[r]));
    return step_of_ranks(step, n_ranks, (const double(*)[N_PHASES])phases_ms);
}

/* One GPU that plays all ranks cannot measure communication. Its times are
 * those that the plan predicts; without predictions there are none. */
static void test_gpu_comm(void)
{
    static struct device_cost costs[] = {
        {.compute_ms = 3, .bwd_comm_ms = 1, .fwd_comm_ms = 2, .total_ms = 6},
        {.compute_ms = 2,
         .bwd_comm_ms = 0.5,
         .fwd_comm_ms = 3,
         .total_ms = 5.5}};
    struct fixture fixture;
    struct exec_options options;
    struct exec_result result = {0};
    struct err err = {0};

    if (!device_count(DEVICE_CUDA))
        return;
    fixture_init_on(&fixture, DEVICE_CUDA, 2, 128);
    add_table(&fixture, "a", 1000, 16, 4);
    add_whole(&fixture, 0);
    add_table(&fixture, "b", 1000, 16, 2);
    add_whole(&fixture, 1);
    quick_options(&options);
    fixture.plan.total_ms = NAN;
    ok(!run(&fixture, &result, &options, &err) &&
           result.comm == EXEC_COMM_ABSENT && isnan(result.total_ms) &&
           isnan(result.costs[0].fwd_comm_ms) &&
           result.ranks[0].compute.median_ms > 0,
       "a plan without costs has no communication on a GPU %s", err.msg);
    is_str(result.comm_basis,
           "none: one GPU runs all ranks, and the plan has no predicted costs",
           "... which the result says");
    costs[0].parts_ms[0] = costs[1].parts_ms[0] = NAN;
    fixture.plan.devices = costs;
    fixture.plan.total_ms = 6;
    fixture.plan.cost.name = "by hand";
    fixture.plan.cost.comm = "made up";
    ok(!run(&fixture, &result, &options, &err) &&
           result.comm == EXEC_COMM_MODELLED,
       "one with costs has theirs %s", err.msg);
    /* predicted waiting is 0 for rank 0 and 1.5 ms for rank 1 */
    ok(result.ranks[0].phases_ms[PHASE_OUTPUT] == 2 &&
           result.ranks[1].phases_ms[PHASE_OUTPUT] == 1.5 &&
           result.ranks[0].phases_ms[PHASE_GRADIENT] == 1,
       "exchanges as predicted");
    is_near(result.total_ms, composed_ms(&result, 2, &options.step), 1e-9,
            "... and compute as measured");
    for (unsigned r = 0; r < 2; r++)
        memcpy(costs[r].parts_ms, (double[]){4, 0, 3, 1, 0, 0.5},
               sizeof(costs[r].parts_ms));
    costs[0].bwd_comm_ms = costs[1].bwd_comm_ms = 1.25;
    ok(!run(&fixture, &result, &options, &err) &&
           result.ranks[1].phases_ms[PHASE_INPUT] == 4 &&
           result.ranks[1].phases_ms[PHASE_OUTPUT] == 3 &&
           result.ranks[1].phases_ms[PHASE_GRADIENT] == 1 &&
           result.ranks[1].phases_ms[PHASE_REDUCE] == 0.25,
       "so are parts, where the plan has them %s", err.msg);
    is_str(result.comm_basis,
           "predicted, not measured: one GPU runs all ranks, so input and "
           "exchanges take the time that by hand predicts (made up); waiting "
           "computed from the ranks' own times",
           "... and the result says so");
    fixture_release(&fixture);
}

static void test_bins(void)
{
    static const double bins[REUSE_BINS] = {0.5, 0.2, 0.2, 0.05, 0.05};
    struct fixture fixture;
    struct exec_result result = {0};
    struct table *table;

    fixture_init(&fixture, 2, 512);
    table = add_table(&fixture, "binned", 20000, 20, 6);
    table->has_bins = true;
    memcpy(table->bins, bins, sizeof(bins));
    add_columns(&fixture, 0, 0, 8);
    add_columns(&fixture, 1, 8, 20);
    run_and_check(&fixture, &result, 1, 1e-5, "a reuse histogram");
    fixture_release(&fixture);
}

static void test_scaled(void)
{
    struct fixture fixture;
    struct exec_result result = {0};

    fixture_init(&fixture, 4, 128);
    add_table(&fixture, "huge", 5000000000, 16, 8);
    add_whole(&fixture, 1);
    add_table(&fixture, "cut", 1000003, 16, 8);
    for (uint32_t i = 0; i < 4; i++)
        add_rows(&fixture, i, i * 250001, i < 3 ? (i + 1) * 250001 : 1000003);
    /* one row per piece for four pieces */
    add_table(&fixture, "vanishing", 4, 16, 8);
    for (uint32_t i = 0; i < 4; i++)
        add_rows(&fixture, i, i, i + 1);
    run_and_check(&fixture, &result, 1e-5, 1e-5, "rows scaled to a 100000th");
    ok(result.scale_rows == 1e-5, "... and the result says so");
    fixture_release(&fixture);
}

static void check_definitions(const struct exec_result *result)
{
    int same = 1, real = 1;

    for (uint32_t r = 0; r < 3; r++) {
        const struct exec_rank *rank = &result->ranks[r];
        const struct device_cost *cost = &result->costs[r];
        const double *ms = rank->phases_ms;

        ok(rank->forward.median_ms > 0 && rank->backward.median_ms > 0 &&
               rank->compute.p10_ms <= rank->compute.median_ms &&
               rank->compute.median_ms <= rank->compute.p90_ms,
           "rank %u has times", r);
        is_near(ms[PHASE_FORWARD] + ms[PHASE_BACKWARD] + ms[PHASE_UPDATE],
                rank->compute.median_ms, 1e-9, "... compute's add up");
        real &= ms[PHASE_INPUT] > 0 && ms[PHASE_PERMUTE] > 0 &&
                ms[PHASE_OUTPUT] > 0 && ms[PHASE_GRADIENT] > 0 &&
                ms[PHASE_REDUCE] > 0 && ms[PHASE_UPDATE] > 0;
        same &=
            cost->bwd_comm_ms == ms[PHASE_GRADIENT] + ms[PHASE_REDUCE] &&
            cost->parts_ms[STEP_INPUT] == ms[PHASE_INPUT] + ms[PHASE_PERMUTE] &&
            cost->compute_ms == rank->compute.median_ms &&
            cost->total_ms == result->total_ms &&
            fabs(cost->total_ms - cost->compute_ms - cost->bwd_comm_ms -
                 cost->fwd_comm_ms) < 1e-9;
    }
    ok(real, "each phase has been measured");
    ok(same, "forward communication is the rest, totals are the step");
}

static void test_definitions(void)
{
    struct fixture fixture;
    struct exec_options options;
    struct exec_result result = {0};
    struct err err = {0};

    fixture_init(&fixture, 3, 300);
    for (uint32_t i = 0; i < 3; i++) {
        add_table(&fixture, &"abc"[i], 2000, 32, 4 * (i + 1.0));
        add_whole(&fixture, i);
    }
    add_table(&fixture, "copies", 500, 16, 2);
    add_replicas(&fixture);
    quick_options(&options);
    for (enum pipeline p = 0; p < N_PIPELINES; p++) {
        options.step = (struct step){.pipeline = p, .n_chunks = 1};
        options.step.dense_ms = p;
        options.step.overlap_cost[PHASE_INPUT] = 0.5;
        ok(!run(&fixture, &result, &options, &err) && !result.failure,
           "pipeline %s %s", pipeline_names[p], err.msg);
        check_definitions(&result);
        ok(result.total_ms == composed_ms(&result, 3, &options.step),
           "the plan takes the step of its ranks' phases");
    }
    is_str(result.comm_basis,
           "copies between rank buffers of one process; waiting computed from "
           "the ranks' own times",
           "the basis of communication times");
    fixture_release(&fixture);
}

static void test_no_check(void)
{
    struct fixture fixture;
    struct exec_options options;
    struct exec_result result;
    struct err err = {0};

    fixture_init(&fixture, 2, 64);
    add_table(&fixture, "a", 100, 8, 1);
    add_whole(&fixture, 1);
    quick_options(&options);
    options.check = false;
    ok(!run(&fixture, &result, &options, &err) && !result.outputs.n &&
           !result.weights.n && result.total_ms > 0,
       "without the check only times are taken");
    fixture_release(&fixture);
}

/* Whether or not the machine is quiet, times are measured and the number of
 * disturbed ranks agrees with the ranks' flags. */
static void test_quiet(void)
{
    struct fixture fixture;
    struct exec_options options;
    struct exec_result result;
    struct err err = {0};
    unsigned n = 0;

    fixture_init(&fixture, 2, 64);
    add_table(&fixture, "a", 100, 8, 1);
    add_whole(&fixture, 1);
    quick_options(&options);
    options.wait_for_quiet = true;
    ok(!run(&fixture, &result, &options, &err) &&
           result.ranks[1].compute.median_ms > 0,
       "timed with an interference probe %s", err.msg);
    for (uint32_t r = 0; r < 2; r++)
        n += result.ranks[r].disturbed;
    is_i64(result.n_disturbed, n, "disturbed ranks are counted");
    ok(!result.ranks[0].disturbed, "... but none that was not timed");
    fixture_release(&fixture);
}

/* A sample sink that stores all samples it receives. */
struct kept {
    unsigned n, n_comm;
    struct comm_sample comm;
    struct sample samples[8];
    struct sample_table tables[8][8];
    struct sample_setting setting;
};

static int keep(void *ctx, const struct sample_setting *setting,
                const struct sample *sample, struct err *err)
{
    struct kept *kept = ctx;

    (void)err;
    kept->setting = *setting;
    memcpy(kept->tables[kept->n], sample->tables,
           sample->n_tables * sizeof(*sample->tables));
    kept->samples[kept->n++] = *sample;
    return 0;
}

static int keep_comm(void *ctx, const struct sample_setting *setting,
                     const struct comm_sample *sample, struct err *err)
{
    struct kept *kept = ctx;

    (void)setting;
    (void)err;
    kept->comm = *sample;
    kept->n_comm++;
    return 0;
}

static int has_kept(void *ctx, const struct sample_setting *setting,
                    uint64_t seed, uint64_t case_idx, enum sample_kind kind,
                    uint32_t part)
{
    const struct kept *kept = ctx;

    (void)setting;
    for (unsigned i = 0; i < kept->n; i++)
        if (kept->samples[i].seed == seed &&
            kept->samples[i].case_idx == case_idx &&
            kept->samples[i].kind == kind && kept->samples[i].part == part)
            return 1;
    return 0;
}

static void check_kept(const struct kept *kept)
{
    is_i64(kept->n, 2, "a sample for each rank that holds something");
    is_i64(kept->samples[0].kind, SAMPLE_EXECUTED, "... of that kind");
    ok(kept->samples[0].case_idx != kept->samples[1].case_idx,
       "... with case numbers of their own");
    is_i64(kept->setting.batch, 200, "the setting's batch is the global one");
    is_i64(kept->samples[0].n_tables, 2, "rank 0 has two pieces");
    is_i64((int64_t)kept->tables[0][0].n_rows, 1000, "rows of the row piece");
    is_near(kept->tables[0][0].pooling_factor +
                kept->tables[1][0].pooling_factor,
            6, 1e-9, "row pieces share the table's pooling");
    is_near(kept->tables[0][1].pooling_factor, 2, 1e-9,
            "a whole table has its own");
    ok(kept->tables[0][1].n_unique > 10 && kept->tables[0][1].n_unique <= 500,
       "unique rows are counted");
}

static void test_samples(void)
{
    struct fixture fixture;
    struct exec_options options;
    struct exec_result result;
    struct kept kept = {0};
    struct sample_sink sink = {
        .ctx = &kept, .put = keep, .put_comm = keep_comm, .has = has_kept};
    struct err err = {0};

    fixture_init(&fixture, 3, 200);
    add_table(&fixture, "split", 3000, 16, 6)->zipf_alpha = 0;
    add_rows(&fixture, 0, 0, 1000);
    add_rows(&fixture, 2, 1000, 3000);
    add_table(&fixture, "whole", 500, 8, 2);
    add_whole(&fixture, 0);
    quick_options(&options);
    options.sink = &sink;
    ok(!run(&fixture, &result, &options, &err), "a run with a sink: %s",
       err.msg);
    is_i64(result.n_stored, 2, "two samples were stored");
    check_kept(&kept);
    ok(kept.n_comm == 1 && kept.comm.n_ranks == 3 && kept.comm.n_hosts == 1,
       "and one of the exchange");
    is_str(kept.comm.kind, "copy", "... by copies");
    is_i64((int64_t)kept.comm.total_bytes, 4 * 200 * (16 + 8 + 16),
           "... of all outputs");
    is_i64((int64_t)kept.comm.max_bytes, 4 * 200 * (16 + 8),
           "... most of which rank 0 sends");
    ok(!run(&fixture, &result, &options, &err) && kept.n == 2 &&
           result.n_stored == 0,
       "the same run again stores nothing twice");
    options.seed++;
    ok(!run(&fixture, &result, &options, &err) && kept.n == 4 &&
           result.n_stored == 2,
       "another seed is another measurement");
    fixture.world->n_hosts = 3;
    fixture.plan.problem.cluster.hosts_per_domain = 3;
    ok(!run(&fixture, &result, &options, &err) && kept.comm.n_hosts == 1,
       "hosts of one NVLink domain count as one");
    fixture_release(&fixture);
}

/* Adds one more table, in front of all others. */
static void add_before(struct fixture *fixture)
{
    struct table *tables = fixture->tables;
    uint32_t last;

    add_table(fixture, "others", 100, 32, 2);
    add_whole(fixture, 1);
    last = last_table(fixture);
    tables[last + 1] = tables[last];
    memmove(tables + 1, tables, last * sizeof(*tables));
    tables[0] = tables[last + 1];
    for (size_t i = 0; i < fixture->plan.n_shards; i++)
        fixture->shards[i].table = (fixture->shards[i].table + 1) % (last + 1);
}

/* Tests that a plan is refused, with the complete message. The plan has one
 * table on two ranks, which `spoil` changes; the second time another table
 * comes first. */
static void reject(void (*spoil)(struct fixture *), const char *want)
{
    for (int is_second = 0; is_second < 2; is_second++) {
        struct fixture fixture;
        struct exec_options options;
        struct exec_result result;
        struct err err = {0};

        fixture_init(&fixture, 2, 1000);
        add_table(&fixture, "users", 100, 32, 2);
        add_whole(&fixture, 0);
        spoil(&fixture);
        if (is_second)
            add_before(&fixture);
        quick_options(&options);
        ok(run(&fixture, &result, &options, &err) && err.code == ERR_INPUT,
           "refused");
        is_str(err.msg, want, "... with that sentence");
        fixture_release(&fixture);
    }
}

static void make_half_output(struct fixture *fixture)
{
    fixture->tables[0].num_outputs = 1.5;
}

static void make_no_output(struct fixture *fixture)
{
    fixture->tables[0].num_outputs = 0;
}

static void make_many_outputs(struct fixture *fixture)
{
    fixture->tables[0].num_outputs = 5e6;
}

static void make_many_lookups(struct fixture *fixture)
{
    fixture->tables[0].pooling_factor = 5e6;
}

static void make_odd_width(struct fixture *fixture)
{
    fixture->tables[0].dim = 30;
    fixture->shards[0].col_end = 30;
}

static void make_bf16(struct fixture *fixture)
{
    fixture->tables[0].precision = PRECISION_BF16;
}

static void make_comm_bf16(struct fixture *fixture)
{
    fixture->tables[0].comm_precision = PRECISION_BF16;
}

static void make_adam(struct fixture *fixture)
{
    fixture->tables[0].optimizer = OPTIMIZER_ADAM;
}

static void make_two_optimizers(struct fixture *fixture)
{
    add_table(fixture, "items", 100, 32, 2)->optimizer = OPTIMIZER_SGD;
    add_whole(fixture, 0);
}

static void make_two_shares(struct fixture *fixture)
{
    add_table(fixture, "items", 100, 32, 2)->dedup = 0.5;
    add_whole(fixture, 0);
    fixture->plan.problem.job.dedup = DEDUP_SESSIONS;
}

static void make_large_batch(struct fixture *fixture)
{
    fixture->plan.problem.batch = 5000000000;
}

static void test_rejections(void)
{
    reject(make_half_output, "table 'users': num_outputs 1.5, not a whole "
                             "number, is not supported yet");
    reject(make_no_output, "table 'users': num_outputs 0 with pooling_factor 2 "
                           "is not supported yet");
    reject(make_many_outputs,
           "table 'users': num_outputs 5e+06 at batch 1000 is more than 2^32 - "
           "1 outputs a step, which is not supported yet");
    reject(make_many_lookups,
           "table 'users': pooling_factor 5e+06 at batch 1000 is more than "
           "2^32 - 1 lookups a step, which is not supported yet");
    reject(make_odd_width, "table 'users': a piece of 30 columns, not a "
                           "multiple of 4, is not supported yet");
    reject(make_bf16, "table 'users': precision bf16 is not supported yet");
    reject(make_comm_bf16,
           "table 'users': comm_precision bf16 is not supported yet");
    reject(make_adam, "table 'users': optimizer adam is not supported yet");
    reject(make_two_optimizers,
           "GPU 0 holds 'users' with rowwise_adagrad and 'items' with sgd: two "
           "optimizers on one GPU are not supported yet");
    reject(make_two_shares, "table 'items': dedup 0.5, while another table has "
                            "1, is not supported yet");
    reject(make_large_batch,
           "batch 5000000000 is not supported yet, only 1 to 2^32 - 1 samples");
}

int main(void)
{
    static const uint32_t n_ranks[] = {1, 3, 4, 8};

    for (unsigned i = 0; i < sizeof(n_ranks) / sizeof(n_ranks[0]); i++) {
        test_table_wise(n_ranks[i], OPTIMIZER_SGD);
        test_table_wise(n_ranks[i], OPTIMIZER_ROWWISE_ADAGRAD);
    }
    test_column_wise(OPTIMIZER_SGD);
    test_column_wise(OPTIMIZER_ROWWISE_ADAGRAD);
    test_row_wise();
    test_sessions();
    test_replicated(OPTIMIZER_SGD, 4);
    test_replicated(OPTIMIZER_ROWWISE_ADAGRAD, 3);
    test_replicated(OPTIMIZER_ROWWISE_ADAGRAD, 8);
    test_one_row();
    test_chunks();
    test_poolings();
    test_outputs();
    test_fp16(OPTIMIZER_SGD);
    test_fp16(OPTIMIZER_ROWWISE_ADAGRAD);
    test_comm_fp16();
    test_hashes();
    test_in_chunks(DEVICE_CPU);
    if (device_count(DEVICE_CUDA))
        test_in_chunks(DEVICE_CUDA);
    test_turns();
    test_gpu_comm();
    test_bins();
    test_scaled();
    test_definitions();
    test_no_check();
    test_quiet();
    test_samples();
    test_rejections();
    return tap_done();
}
