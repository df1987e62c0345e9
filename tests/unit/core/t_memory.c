/* SPDX-License-Identifier: MIT */
#include "core/memory.h"
#include "core/problem.h"

#include "base/rng.h"
#include "core/cluster.h"
#include "tests/tap.h"

/*
 * Memory of a training step, compared with published measurements.
 *
 * The audit of memory in TorchRec's train pipelines,
 * https://github.com/meta-pytorch/torchrec/pull/4067, measured jobs whose batch
 * is a KJT of 1.5 GB per GPU. Permuted, the batch is 2 GB, as some features are
 * sent to several column pieces. The audit's figures:
 *
 *     2 GB     least extra memory that two batches need over the job
 *              without a pipeline ("1x permuted KJT")
 *     10.5 GB  reserved beyond that least by TrainPipelineSparseDist as it
 *              ships ("3x KJT + 3x permuted KJT")
 *     5 GB     part of SDD's peak of allocations due to the pipeline
 *     11.5 GB  part of SDD's reserved memory due to the pipeline
 *              ("1x KJT + 5x permuted KJT")
 *
 * https://github.com/NVIDIA/nccl/issues/1685: the first all-to-all takes 3.28
 * GB of each of 8 H100 (1.06 to 4.34), in buffers of 10 MiB and 2 MiB, for each
 * of 32 channels to 7 peers.
 */

enum { N_TABLES = 3 };

static struct table tables[N_TABLES];
static uint64_t memory_bytes[64], reserve_bytes[64];

/* Three tables with 500 B of ids and lengths per sample each, 0.5 GB per
 * batch. */
static struct problem make_problem(enum pipeline pipeline,
                                   enum buffer_rule rule)
{
    for (int i = 0; i < N_TABLES; i++) {
        table_init(&tables[i]);
        tables[i].name = "t";
        tables[i].num_embeddings = 1000;
        tables[i].dim = 64;
        tables[i].pooling_factor = 62;
    }
    return (struct problem){.tables = tables,
                            .n_tables = N_TABLES,
                            .cluster = {.n_devices = 1,
                                        .devices_per_host = 1,
                                        .memory_bytes = memory_bytes,
                                        .reserve_bytes = reserve_bytes},
                            .batch = 1000000,
                            .kinds = SHARD_ALL_KINDS,
                            .buffers = rule,
                            .job = {.pipeline = pipeline}};
}

/* Returns the input memory, in GB, of all tables on one device. The last table
 * is cut into two column pieces. */
static double input_gb(enum pipeline pipeline, enum buffer_rule rule)
{
    struct problem problem = make_problem(pipeline, rule);
    uint64_t bytes = sample_memory(&problem).input;

    for (uint32_t t = 0; t < N_TABLES; t++) {
        struct shard shard = shard_whole(&problem, t, 0);

        if (t == N_TABLES - 1) {
            shard.kind = SHARD_COLUMN;
            shard.col_end = 32;
            bytes += shard_memory(&problem, &shard).input;
        }
        bytes += shard_memory(&problem, &shard).input;
    }
    return (double)bytes * 1e-9;
}

static void test_copies(void)
{
    const enum buffer_rule rule = BUFFERS_COPIES;
    const double kjt = 1.5, permuted = 2, sdd = input_gb(PIPELINE_SDD, rule);
    const double more = sdd - input_gb(PIPELINE_NONE, rule);

    is_near(input_gb(PIPELINE_NONE, rule), kjt + permuted, 1e-9, "one of each");
    is_near(sdd, 10.5 + 2, 1e-9,
            "SDD: 10.5 GB reserved above the least, and "
            "2 GB that the least keeps of another batch");
    printf("# the pipeline takes %.1f GB, 5 at the peak of allocations, 11.5 "
           "reserved\n",
           more);
    ok(more > 5 && more < 11.5,
       "between the published allocated and reserved bytes");
    is_near(input_gb(PIPELINE_PREFETCH, rule), sdd + kjt + 2 * permuted, 1e-9,
            "a batch further ahead");
    is_near(input_gb(PIPELINE_SEMISYNC, rule), sdd + kjt + 2 * permuted, 1e-9,
            "so is semisync");
}

/* The audit's peak of allocations is at the end of the forward pass, when the
 * next batch is not received yet. */
static void test_traced(void)
{
    const enum buffer_rule rule = BUFFERS_TRACED;
    const double kjt = 1.5, permuted = 2, pieces = 1, offsets = 4 * 0.012;
    const double none = input_gb(PIPELINE_NONE, rule);
    const double sdd = input_gb(PIPELINE_SDD, rule);

    is_near(none, kjt + permuted + offsets, 1e-9, "one of each, and offsets");
    is_near(sdd, 4 * kjt + 2 * permuted + pieces + offsets, 1e-9,
            "SDD: three delivered batches, one sent and two received");
    is_near(sdd - none, 5 + permuted + (kjt + pieces - permuted), 1e-9,
            "the audit's 5 GB, the next batch, and what column pieces send");
    is_near(input_gb(PIPELINE_PREFETCH, rule), sdd, 1e-9,
            "prefetch keeps as many batches");
    is_near(input_gb(PIPELINE_SEMISYNC, rule), sdd + permuted + offsets, 1e-9,
            "semisync has a second batch looked up");
}

/* Buffers of a table of 8 columns, for 100 samples on two GPUs. The figures are
 * added up by hand. */
static void test_buffers(void)
{
    static const struct {
        const char *name;
        enum pipeline pipeline;
        enum shard_kind kind;
        enum table_output output;
        double pooling;
        uint64_t input, outputs;
        enum precision sent;
    } cases[] = {
        {"sorted ids are larger", PIPELINE_SDD, SHARD_TABLE, OUTPUT_POOLED, 10,
         2 * 8400 + 1200, 3200 + 40000, PRECISION_FP32},
        {"the sent copy is larger", PIPELINE_SDD, SHARD_TABLE, OUTPUT_POOLED,
         0.5, 2 * 800 + 1200, 2 * 3200, PRECISION_FP32},
        {"without a pipeline", PIPELINE_NONE, SHARD_TABLE, OUTPUT_POOLED, 10,
         8400 + 1200, 3200 + 40000, PRECISION_FP32},
        {"outputs ahead", PIPELINE_SEMISYNC, SHARD_TABLE, OUTPUT_POOLED, 10,
         3 * 8400 + 2 * 1200, 2 * 3200 + 40000, PRECISION_FP32},
        {"sequences", PIPELINE_SDD, SHARD_TABLE, OUTPUT_SEQUENCE, 10,
         2 * 8400 + 1200, 32000 + 48000, PRECISION_FP32},
        {"a column piece", PIPELINE_SDD, SHARD_COLUMN, OUTPUT_POOLED, 10,
         3 * 8400 + 1200, 1600 + 40000, PRECISION_FP32},
        {"a column piece is sent at once", PIPELINE_NONE, SHARD_COLUMN,
         OUTPUT_POOLED, 10, 8400 + 1200, 1600 + 40000, PRECISION_FP32},
        {"a row block", PIPELINE_SDD, SHARD_ROW, OUTPUT_POOLED, 0.5,
         3 * (200 + 400) + 1200, 3200 + 1000, PRECISION_FP32},
        {"a row block of sequences", PIPELINE_SEMISYNC, SHARD_ROW,
         OUTPUT_SEQUENCE, 10, 4 * (4000 + 400) + 2400, 2 * 16000 + 24000,
         PRECISION_FP32},
        {"fp16", PIPELINE_NONE, SHARD_TABLE, OUTPUT_POOLED, 10, 8400 + 1200,
         1600 + 40000, PRECISION_FP16},
        {"a replica", PIPELINE_SDD, SHARD_REPLICATE, OUTPUT_POOLED, 10,
         4000 + 800, 20000 + 2 * 32000, PRECISION_FP32},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct problem problem =
            make_problem(cases[i].pipeline, BUFFERS_TRACED);
        struct shard shard = shard_whole(&problem, 0, 0);
        struct memory_items items;

        problem.cluster.n_devices = 2;
        problem.batch = 100;
        tables[0].dim = 8;
        tables[0].pooling_factor = cases[i].pooling;
        tables[0].output = cases[i].output;
        tables[0].comm_precision = cases[i].sent;
        shard.col_end = cases[i].kind == SHARD_COLUMN ? 4 : 8;
        shard.row_end = cases[i].kind == SHARD_ROW ? 500 : 1000;
        shard.kind = cases[i].kind;
        items = shard_memory(&problem, &shard);
        ok(items.input == cases[i].input && items.outputs == cases[i].outputs,
           "%s: %" PRIu64 " and %" PRIu64 " bytes", cases[i].name, items.input,
           items.outputs);
    }
}

static void test_nccl(void)
{
    struct cluster cluster = {.n_devices = 8, .devices_per_host = 8};
    uint64_t one_host = cluster_nccl_bytes(&cluster);

    is_near((double)one_host, 3.28e9, 0.05 * 3.28e9, "NCCL on 8 H100");
    cluster.n_devices = cluster.devices_per_host = 1;
    is_i64((int64_t)cluster_nccl_bytes(&cluster), 0, "one GPU has no peer");
    cluster.n_devices = 64;
    cluster.devices_per_host = 8;
    ok(cluster_nccl_bytes(&cluster) < one_host / 2,
       "the network has fewer channels a peer");
    cluster.hosts_per_domain = 8;
    is_i64((int64_t)cluster_nccl_bytes(&cluster), (int64_t)(8 * one_host),
           "an NVLink domain is one host");
}

/* Usable memory for shards is the same however it is computed. */
static void test_room(void)
{
    struct problem problem = make_problem(PIPELINE_SDD, BUFFERS_TRACED);
    struct memory_items samples, reserved;
    uint64_t room[3];

    problem.cluster.n_devices = 3;
    problem.batch = 1000;
    problem.cluster.nccl_bytes = 500;
    memory_bytes[0] = 10000000;
    reserve_bytes[0] = 400;
    memory_bytes[1] = 1000;
    reserve_bytes[1] = 600;
    memory_bytes[2] = reserve_bytes[2] = UINT64_MAX;
    samples = sample_memory(&problem);
    is_i64((int64_t)samples.input, 4 * 3 * 500000 / 3, "a third of the batch");
    is_i64((int64_t)samples.outputs, 2 * 3 * 1000 * 64 * 4 / 3,
           "and its outputs with gradients");
    problem_room_bytes(&problem, room);
    is_i64((int64_t)room[0], (int64_t)(10000000 - 400 - samples.total),
           "room is what neither takes");
    is_i64((int64_t)room[1], 0, "or nothing");
    is_i64((int64_t)room[2], 0, "also of the largest");
    reserved = reserved_memory(&problem.cluster, 0);
    ok(reserved.nccl == 400 && !reserved.reserve && reserved.total == 400,
       "NCCL takes the reserve as far as it goes");
    reserved = reserved_memory(&problem.cluster, 1);
    ok(reserved.nccl == 500 && reserved.reserve == 100 && reserved.total == 600,
       "and leaves the rest");
    problem.memory_model = MEMORY_WEIGHTS;
    is_i64((int64_t)sample_memory(&problem).total, 0, "weights are all");
}

/* A larger batch or a longer pipeline never reduces any memory item. */
static void test_monotone(void)
{
    struct rng rng;
    int n_wrong = 0;

    rng_init(&rng, 8, 0);
    for (int i = 0; i < 2000; i++) {
        struct problem problem =
            make_problem((enum pipeline)(i % N_PIPELINES),
                         (enum buffer_rule)rng_below(&rng, 2));
        struct shard shard = shard_whole(&problem, 0, 0);
        struct memory_items less[2], more[2];

        tables[0].output = rng_below(&rng, 2) ? OUTPUT_SEQUENCE : OUTPUT_POOLED;
        shard.kind = (enum shard_kind)(1u << rng_below(&rng, N_SHARD_KINDS));
        shard.row_end = 1 + rng_below(&rng, 1000);
        problem.batch = 1 + rng_below(&rng, 1u << 30);
        less[0] = shard_memory(&problem, &shard);
        less[1] = sample_memory(&problem);
        problem.batch += rng_below(&rng, 1000);
        if (problem.job.pipeline == PIPELINE_NONE)
            problem.job.pipeline = PIPELINE_SDD;
        more[0] = shard_memory(&problem, &shard);
        more[1] = sample_memory(&problem);
        for (unsigned k = 0; k < 2 * N_MEMORY_ITEMS; k++)
            n_wrong += less[k % 2].item[k / 2] > more[k % 2].item[k / 2];
    }
    is_i64(n_wrong, 0, "no item shrinks with the batch or the pipeline");
}

int main(void)
{
    test_copies();
    test_traced();
    test_buffers();
    test_nccl();
    test_room();
    test_monotone();
    return tap_done();
}
