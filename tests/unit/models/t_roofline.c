/* SPDX-License-Identifier: MIT */
#include "costmodel/models/oracles.h"

#include "costmodel/formulas/roofline.h"
#include "costmodel/modelfile/gpu_file.h"
#include "tests/shipped_gpu.h"
#include "tests/tap.h"

#include <math.h>

static struct table make_table(uint64_t rows, uint32_t dim, double pooling)
{
    struct table table;

    table_init(&table);
    table.name = "t";
    table.num_embeddings = rows;
    table.dim = dim;
    table.pooling_factor = pooling;
    return table;
}

static struct problem make_problem(struct table *tables, size_t n,
                                   uint32_t n_devices)
{
    return (struct problem){
        .tables = tables,
        .n_tables = n,
        .batch = 65536,
        .kinds = SHARD_ALL_KINDS,
        .cluster = {.n_devices = n_devices, .devices_per_host = n_devices}};
}

/* Returns the compute time of one device with these shards, in ms. */
static double compute_ms(const char *gpu, const struct problem *problem,
                         const struct shard *shards, size_t n)
{
    struct oracle *oracle = NULL;
    double *vectors, *sums, ms = NAN;
    struct arena arena = {0};
    struct err err = {0};

    if (!oracle_roofline_open(&oracle, gpu, problem, &arena, &err)) {
        vectors = ARENA_NEW(&arena, double, (n + 1) * oracle->width);
        sums = vectors + n * oracle->width;
        oracle->ops->embed(oracle, shards, n, vectors);
        for (size_t i = 0; i < n * oracle->width; i++)
            sums[i % oracle->width] += vectors[i];
        oracle->ops->compute(oracle, sums, 1, &ms);
    }
    arena_release(&arena);
    return ms;
}

static double whole_ms(const char *gpu, struct table table)
{
    struct problem problem = make_problem(&table, 1, 4);
    struct shard shard = shard_whole(&problem, 0, 0);

    return compute_ms(gpu, &problem, &shard, 1);
}

/* Returns the time of the checks of ids for a batch of 65,536 samples with 20
 * lookups each, in ms: 14 us, one warp per bag, and reading the ids. */
static double checks_ms(const struct gpu_spec *gpu)
{
    const double bags = 65536, ids = 20 * bags;

    return gpu->comm_form == COMM_TOTAL
               ? 0
               : 0.014 + 1e-6 * (ceil(bags * 0.2304 * 132 * 1.755 /
                                          (gpu->n_sms * gpu->clock_ghz) +
                                      ids * 0.00223 * 2900 / gpu->dram_gbps));
}

/* Prices of lookups as they were when the figures of the GPUs were still
 * compiled in, plus the check of ids. */
static void check_gpus(void)
{
    static const struct {
        const char *gpu;
        double want_ms;
    } cases[] = {
        {"h100", 0.59580023151223789},     {"h200", 0.54506087830625598},
        {"b200", 0.42949823611275038},     {"a100", 1.1746234282056229},
        {"v100-32gb", 2.2469047792359824}, {"cpu", 20.965276604155936},
    };
    struct oracle *oracle = NULL;
    struct problem problem = make_problem(NULL, 0, 1);
    struct err err = {0};
    struct arena arena = {0};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_near(whole_ms(cases[i].gpu, make_table(1000000, 128, 20)),
                cases[i].want_ms + checks_ms(shipped_gpu(cases[i].gpu, &arena)),
                1e-12 * cases[i].want_ms, cases[i].gpu);
    for (const char *const *name = gpu_names(&arena); *name; name++)
        ok(whole_ms(*name, make_table(1000000, 128, 20)) > 0,
           "%s: %.3f ms for a table of 10^6 x 128, pooling 20", *name,
           whole_ms(*name, make_table(1000000, 128, 20)));
    ok(oracle_roofline_open(&oracle, "h900", &problem, &arena, &err) &&
           err.code == ERR_USAGE &&
           !strncmp(err.msg, "no figures for a GPU 'h900'; known are ", 39),
       "an unknown GPU: %s", err.msg);
    arena_release(&arena);
}

static void check_shape(void)
{
    struct table table = make_table(20000000, 128, 20);
    struct problem problem = make_problem(&table, 1, 4);
    struct shard whole = shard_whole(&problem, 0, 0), half = whole, row = whole,
                 copy = whole;
    double whole_cost, half_cost, row_cost, costs[4];

    is_near(compute_ms("h100", &problem, NULL, 0), 0, 0,
            "an empty device costs nothing");
    half.kind = SHARD_COLUMN;
    half.col_end = 64;
    row.kind = SHARD_ROW;
    row.row_end /= 2;
    copy.kind = SHARD_REPLICATE;
    whole_cost = compute_ms("h100", &problem, &whole, 1);
    half_cost = compute_ms("h100", &problem, &half, 1);
    row_cost = compute_ms("h100", &problem, &row, 1);
    ok(half_cost < whole_cost && 2 * half_cost > 1.05 * whole_cost,
       "a column half repeats indices and sort: %.3f of %.3f ms", half_cost,
       whole_cost);
    ok(row_cost > 0.45 * whole_cost && row_cost < half_cost,
       "a row half has half the look-ups: %.3f ms", row_cost);
    ok(compute_ms("h100", &problem, &copy, 1) > 2 * whole_cost,
       "a large replica goes through the dense optimizer as a whole");
    table.num_embeddings = 1000;
    table.pooling_factor = 200;
    copy.row_end = whole.row_end = 1000;
    ok(compute_ms("h100", &problem, &copy, 1) <
           0.5 * compute_ms("h100", &problem, &whole, 1),
       "one of four small replicas serves a quarter of the batch");
    table = make_table(20000000, 128, 20);
    whole.row_end = table.num_embeddings;

    table.zipf_alpha = 0;
    for (unsigned i = 0; i < 4; i++) {
        table.optimizer = (enum optimizer)i;
        costs[i] = compute_ms("h100", &problem, &whole, 1);
    }
    ok(costs[0] < costs[1] && costs[1] < costs[2] && costs[2] < costs[3],
       "sgd < row-wise Adagrad < Adagrad < Adam");
    table.optimizer = OPTIMIZER_SGD;
    table.precision = PRECISION_FP16;
    ok(compute_ms("h100", &problem, &whole, 1) < costs[0],
       "fp16 rows are cheaper");
    costs[1] = compute_ms("h100", &problem, &whole, 1);
    table.zipf_alpha = 1.3;
    costs[2] = compute_ms("h100", &problem, &whole, 1);
    ok(costs[2] < costs[1], "skew is cheaper than none");
    table.pooling_factor = 0;
    costs[3] = compute_ms("h100", &problem, &whole, 1);
    ok(costs[3] > 0 && costs[3] < 0.2, "no look-ups: launches and outputs");
}

/* Each row is used 12 times or 6144 times. Only rows used 6144 times fit into
 * the cache. The others come from memory at nearly every lookup. */
static void check_cache(void)
{
    struct table table = make_table(20000000, 128, 200);
    const double lookups = 65536 * 200, memory_ms = lookups * 512 / 3.35e9;
    double from_memory, from_cache;

    table.optimizer = OPTIMIZER_SGD;
    table.has_bins = true;
    table.bins[4] = 1;
    from_memory = whole_ms("h100", table);
    table.bins[4] = 0;
    table.bins[13] = 1;
    from_cache = whole_ms("h100", table);
    ok(from_memory - from_cache > 0.75 * memory_ms,
       "%.2f ms where rows come from memory, %.2f from cache", from_memory,
       from_cache);
}

/* Ranks FBGEMM's optimizers by update time as an H100 does, for eight tables of
 * 10^6 rows x 16: state per row, then state per element with second moments per
 * row, then the full state of Adam. */
static void check_optimizers(void)
{
    static const enum optimizer rising[] = {OPTIMIZER_SGD,
                                            OPTIMIZER_ROWWISE_ADAGRAD,
                                            OPTIMIZER_PARTIAL_ROWWISE_ADAM,
                                            OPTIMIZER_PARTIAL_ROWWISE_LAMB,
                                            OPTIMIZER_ADAM,
                                            OPTIMIZER_LAMB};
    double last_ms = 0;

    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++) {
        struct table table = make_table(1000000, 16, 20);
        double ms;

        table.zipf_alpha = 0;
        table.optimizer = rising[i];
        ms = whole_ms("h100", table);
        ok(ms > last_ms, "%s: %.3f ms", optimizer_names[rising[i]], ms);
        last_ms = ms;
    }
}

static void check_order(void)
{
    struct table table = make_table(40000000, 128, 30);
    static const char *const gpus[] = {"b200", "h200",      "h100",
                                       "a100", "v100-32gb", "cpu"};

    for (unsigned i = 0; i + 1 < sizeof gpus / sizeof *gpus; i++)
        ok(whole_ms(gpus[i], table) < whole_ms(gpus[i + 1], table),
           "%s is faster than %s", gpus[i], gpus[i + 1]);
    /* Two threads of the EPYC read random rows of 512 B at 45 GB/s
     * (tests/bench/bench_lookup.c). That covers only the forward pass. */
    table = make_table(10000000, 128, 20);
    table.zipf_alpha = 0;
    ok(whole_ms("cpu", table) > 512 / 45e6 * 65536 * 20,
       "a CPU step takes longer than its measured gather");
}

/* Fused tables share their launches and sort passes, so they cost less than
 * single tables. */
static void check_fusion(void)
{
    struct table tables[8];
    struct shard shards[8];
    struct problem problem = make_problem(tables, 8, 1);
    double fused, single = 0;

    for (uint32_t i = 0; i < 8; i++) {
        tables[i] = make_table(10000, 32, 2);
        shards[i] = shard_whole(&problem, i, 0);
    }
    fused = compute_ms("h100", &problem, shards, 8);
    for (uint32_t i = 0; i < 8; i++)
        single += compute_ms("h100", &problem, &shards[i], 1);
    ok(fused < 0.6 * single, "fused %.3f ms, one by one %.3f ms", fused,
       single);
}

/* Fused tables read and write each used row. The backward pass of a replica
 * only writes it, because its update is counted separately. */
static void check_replica_traffic(void)
{
    static const double row_bytes[] = {64, 128, 512};
    struct arena arena = {0};
    const struct gpu_spec *gpu = shipped_gpu("h100", &arena);

    for (size_t c = 0; c < sizeof row_bytes / sizeof *row_bytes; c++) {
        double lanes[2][2][FUSED_LANES];
        unsigned n_differ = 0;

        for (int is_replica = 0; is_replica < 2; is_replica++)
            for (int more = 0; more < 2; more++) {
                const struct feature_input input = {.dim = row_bytes[c] / 4,
                                                    .n_rows = 1e6,
                                                    .n_lookups = 1e5,
                                                    .n_outputs = 1e4,
                                                    .n_unique =
                                                        more ? 5e4 : 2e4,
                                                    .row_bytes = row_bytes[c],
                                                    .comm_bytes = 4,
                                                    .batch = 1e4};

                fused_fill(gpu, &input, is_replica, lanes[is_replica][more]);
            }
        for (unsigned l = 0; l < FUSED_LANES; l++) {
            const double fused = lanes[0][1][l] - lanes[0][0][l];
            const double replica = lanes[1][1][l] - lanes[1][0][l];

            if (fabs(fused - replica) <= 1e-9 * fabs(fused))
                continue;
            n_differ++;
            is_near(fused / replica, 2, 1e-9,
                    "a fused row's traffic is twice a replica's");
        }
        is_i64(n_differ, 1, "in one lane");
    }
    arena_release(&arena);
}

/* Bytes per element and number of kernels, as measured on an H100. */
static void check_replica_update(void)
{
    static const struct {
        const char *name;
        enum optimizer optimizer;
        double bytes, kernels;
    } cases[] = {
        {"sgd", OPTIMIZER_SGD, 12, 1},
        {"row-wise Adagrad", OPTIMIZER_ROWWISE_ADAGRAD, 30, 6},
        {"Adagrad", OPTIMIZER_ADAGRAD, 44, 4},
        {"Adam", OPTIMIZER_ADAM, 72, 7},
        {"LAMB", OPTIMIZER_LAMB, 88, 11},
    };
    struct arena arena = {0};
    const struct gpu_spec *gpu = shipped_gpu("h100", &arena);

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct table table = make_table(1000, 64, 4);
        struct problem problem = make_problem(&table, 1, 4);
        struct shard copy = shard_whole(&problem, 0, 0);
        struct table_use use;
        double lanes[JOB_LANES];

        table.optimizer = cases[c].optimizer;
        copy.kind = SHARD_REPLICATE;
        use = problem_use(&problem, 0, 65536);
        job_embed(gpu, &problem, &copy, &use, lanes);
        is_near(lanes[JOB_COMM + COMM_LANE_UPDATE],
                1000 * 64 * cases[c].bytes / (gpu->dram_gbps * 1e6) +
                    cases[c].kernels * gpu->launch_us / 1000,
                1e-12, cases[c].name);
    }
    arena_release(&arena);
}

int main(void)
{
    check_gpus();
    check_shape();
    check_replica_traffic();
    check_replica_update();
    check_cache();
    check_optimizers();
    check_order();
    check_fusion();
    return tap_done();
}
