/* SPDX-License-Identifier: MIT */
#include "core/plan_check.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "core/cluster.h"
#include "tests/tap.h"

#define N_DEVICES 4
#define N_TABLES 7
#define MAX_SHARDS 32

/* A plan with one table of each shard kind, a pin and a group. It lives in
 * fixed arrays, so that each case starts from a fresh copy. */
struct fixture {
    struct table tables[N_TABLES];
    struct shard shards[MAX_SHARDS];
    struct device_cost devices[N_DEVICES];
    uint64_t memory[N_DEVICES], reserve[N_DEVICES];
    double shard_ms[MAX_SHARDS];
    struct plan plan;
};

enum { WHOLE, WIDE, TALL, SQUARE, SMALL, FRIEND, MATE };

static void add_table(struct fixture *f, const char *name, uint64_t rows,
                      uint32_t dim)
{
    struct table *table = &f->tables[f->plan.problem.n_tables++];

    table_init(table);
    table->name = name;
    table->num_embeddings = rows;
    table->dim = dim;
    table->pooling_factor = 3;
}

static void add_shard(struct fixture *f, struct shard shard)
{
    f->shards[f->plan.n_shards++] = shard;
}

static void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->plan.problem.tables = f->tables;
    f->plan.problem.kinds = SHARD_ALL_KINDS;
    f->plan.problem.batch = 1024;
    f->plan.problem.cluster = (struct cluster){
        .n_devices = N_DEVICES,
        .devices_per_host = 2,
        .memory_bytes = f->memory,
        .reserve_bytes = f->reserve,
    };
    f->plan.shards = f->shards;
    f->plan.total_ms = f->plan.bound_ms = NAN;
    for (unsigned r = 0; r < N_DEVICES; r++)
        f->memory[r] = 16u << 20;
    add_table(f, "whole", 1000, 64);
    add_table(f, "wide", 2000, 128);
    add_table(f, "tall", 4000, 32);
    add_table(f, "square", 1000, 64);
    add_table(f, "small", 10, 6);
    add_table(f, "friend", 100, 10);
    add_table(f, "mate", 200, 12);
    f->tables[FRIEND].device = 2;
    f->tables[FRIEND].group = f->tables[MATE].group = "pals";
    /* shard 0 */
    add_shard(f,
              (struct shard){WHOLE, SHARD_TABLE, 0, 1000, 0, 64, 0, TIER_HBM});
    /* shards 1 to 3, out of order */
    add_shard(
        f, (struct shard){WIDE, SHARD_COLUMN, 0, 2000, 96, 128, 3, TIER_HBM});
    add_shard(f,
              (struct shard){WIDE, SHARD_COLUMN, 0, 2000, 0, 64, 1, TIER_HBM});
    add_shard(f,
              (struct shard){WIDE, SHARD_COLUMN, 0, 2000, 64, 96, 3, TIER_HBM});
    /* shards 4 to 6 */
    add_shard(f, (struct shard){TALL, SHARD_ROW, 0, 1500, 0, 32, 0, TIER_HBM});
    add_shard(f,
              (struct shard){TALL, SHARD_ROW, 1500, 3999, 0, 32, 1, TIER_HBM});
    add_shard(f,
              (struct shard){TALL, SHARD_ROW, 3999, 4000, 0, 32, 1, TIER_HBM});
    /* shards 7 to 11: a pinwheel, which guillotine cuts cannot produce */
    add_shard(f,
              (struct shard){SQUARE, SHARD_GRID, 0, 400, 0, 40, 0, TIER_HBM});
    add_shard(f,
              (struct shard){SQUARE, SHARD_GRID, 0, 600, 40, 64, 1, TIER_HBM});
    add_shard(
        f, (struct shard){SQUARE, SHARD_GRID, 600, 1000, 20, 64, 2, TIER_HBM});
    add_shard(
        f, (struct shard){SQUARE, SHARD_GRID, 400, 1000, 0, 20, 3, TIER_HBM});
    add_shard(
        f, (struct shard){SQUARE, SHARD_GRID, 400, 600, 20, 40, 0, TIER_HBM});
    /* shards 12 to 15 */
    for (uint32_t r = 0; r < N_DEVICES; r++)
        add_shard(f, (struct shard){SMALL, SHARD_REPLICATE, 0, 10, 0, 6, r,
                                    TIER_HBM});
    /* shards 16 and 17 */
    add_shard(f,
              (struct shard){FRIEND, SHARD_TABLE, 0, 100, 0, 10, 2, TIER_HBM});
    add_shard(f, (struct shard){MATE, SHARD_TABLE, 0, 200, 0, 12, 2, TIER_HBM});
}

/* Bytes for the 256 samples of each GPU, with seven tables and 3 lookups and
 * one bag per table. Ids of 8 B and lengths of 4 B are held three times,
 * outputs and gradients once each. */
#define OWN_INPUT (3 * 7 * 256 * (3 * 8 + 4))
#define OWN_OUTPUTS (2 * 256 * (64 + 128 + 32 + 64 + 6 + 10 + 12) * 4)
/* Bytes of input for pieces that serve all 1024 samples. It is held four times,
 * that of row pieces five times. */
#define INPUT (4 * 1024 * (3 * 8 + 4))
#define LENGTHS (1024 * 4)
#define SMALL_INPUT (4 * 256 * (3 * 8 + 4))

/* Adds costs of plausible size. Memory is counted by hand, in bytes: weights,
 * row-wise Adagrad's state, input, and outputs with gradients. */
static void add_costs(struct fixture *f)
{
    static const struct memory_items memory[N_DEVICES] = {
        {.weights = 1000 * 64 * 4 + 1500 * 32 * 4 + 400 * 40 * 4 +
                    200 * 20 * 4 + 10 * 6 * 4,
         .optimizer = 4 * (1000 + 1500 + 400 + 200 + 10),
         /* in order: whole, tall, square twice, small with its dense
          * gradient */
         .input = OWN_INPUT + INPUT + 5 * (1152 * 8 + LENGTHS) + 69632 + 45056 +
                  SMALL_INPUT,
         .outputs = OWN_OUTPUTS + 2 * 1024 * 64 * 4 + 2 * 1024 * 32 * 4 +
                    2 * 1024 * 40 * 4 + 2 * 1024 * 20 * 4 + 2 * 256 * 6 * 4 +
                    10 * 6 * 4},
        {.weights = 2000 * 64 * 4 + 2499 * 32 * 4 + 1 * 32 * 4 + 600 * 24 * 4 +
                    10 * 6 * 4,
         .optimizer = 4 * (2000 + 2499 + 1 + 600 + 10),
         .input = OWN_INPUT + INPUT + 97247 + 20511 + 94208 + SMALL_INPUT,
         .outputs = OWN_OUTPUTS + 2 * 1024 * 64 * 4 + 2 * 2 * 1024 * 32 * 4 +
                    2 * 1024 * 24 * 4 + 2 * 256 * 6 * 4 + 10 * 6 * 4},
        {.weights = 400 * 44 * 4 + 10 * 6 * 4 + 100 * 10 * 4 + 200 * 12 * 4,
         .optimizer = 4 * (400 + 10 + 100 + 200),
         .input = OWN_INPUT + 69632 + SMALL_INPUT + 2 * INPUT,
         .outputs = OWN_OUTPUTS + 2 * 1024 * 44 * 4 + 2 * 256 * 6 * 4 +
                    10 * 6 * 4 + 2 * 1024 * 10 * 4 + 2 * 1024 * 12 * 4},
        {.weights = 2 * 2000 * 32 * 4 + 600 * 20 * 4 + 10 * 6 * 4,
         .optimizer = 4 * (2000 + 2000 + 600 + 10),
         .input = OWN_INPUT + 2 * INPUT + 94208 + SMALL_INPUT,
         .outputs = OWN_OUTPUTS + 2 * 2 * 1024 * 32 * 4 + 2 * 1024 * 20 * 4 +
                    2 * 256 * 6 * 4 + 10 * 6 * 4},
    };

    f->plan.devices = f->devices;
    f->plan.shard_ms = f->shard_ms;
    for (unsigned r = 0; r < N_DEVICES; r++) {
        struct device_cost *device = &f->devices[r];

        device->compute_ms = 3 + r;
        device->bwd_comm_ms = 0.25;
        device->fwd_comm_ms = 5.5 - r;
        device->total_ms = 8.75;
        device->memory = memory[r];
        device->memory.total = memory[r].weights + memory[r].optimizer +
                               memory[r].input + memory[r].outputs;
    }
    f->plan.total_ms = 8.75;
}

struct legal_case {
    const char *name;
    void (*change)(struct fixture *f);
};

static void change_nothing(struct fixture *f)
{
    (void)f;
}

static void change_unpriced(struct fixture *f)
{
    add_costs(f);
    f->plan.total_ms = NAN;
    for (unsigned r = 0; r < N_DEVICES; r++) {
        struct device_cost *device = &f->devices[r];

        device->compute_ms = device->bwd_comm_ms = NAN;
        device->fwd_comm_ms = device->total_ms = NAN;
    }
}

static void change_bound(struct fixture *f)
{
    add_costs(f);
    f->plan.bound_ms = 8.75;
    f->shard_ms[3] = NAN;
}

/* Sums of rounded parts may differ by one millionth. */
static void change_rounded(struct fixture *f)
{
    add_costs(f);
    f->devices[1].total_ms = 8.75 * (1 + 9e-7);
    f->plan.total_ms = 8.75 * (1 + 1e-7);
    f->plan.bound_ms = 8.75 * (1 + 9e-7);
}

static void change_negative_part(struct fixture *f)
{
    add_costs(f);
    f->devices[2].bwd_comm_ms = -0.25;
    f->devices[2].fwd_comm_ms = 4;
}

/* The sum of bins may be off by one hundredth in either direction. A table that
 * is never looked up has no bins. */
static void change_bins(struct fixture *f)
{
    f->tables[WIDE].has_bins = true;
    f->tables[WIDE].bins[0] = 0.5;
    f->tables[WIDE].bins[3] = 0.492;
    f->tables[TALL].has_bins = true;
    f->tables[TALL].bins[1] = 1.008;
    f->tables[WHOLE].has_bins = true;
    f->tables[WHOLE].pooling_factor = 0;
}

/* Device 1, which needs most memory, has exactly that memory. */
static void change_memory_fits(struct fixture *f)
{
    add_costs(f);
    f->reserve[1] = f->devices[1].memory.reserve = 1000;
    f->devices[1].memory.total += 1000;
    f->memory[1] = f->devices[1].memory.total;
}

static void change_reversed(struct fixture *f)
{
    for (size_t i = 0, j = f->plan.n_shards - 1; i < j; i++, j--) {
        struct shard shard = f->shards[i];

        f->shards[i] = f->shards[j];
        f->shards[j] = shard;
    }
}

static void change_one_device(struct fixture *f)
{
    f->plan.problem.cluster.n_devices = 1;
    f->plan.problem.cluster.devices_per_host = 1;
    f->plan.problem.n_tables = 1;
    f->plan.n_shards = 1;
    f->shards[0].kind = SHARD_REPLICATE;
}

/* Counts weights only; device 0 holds five pieces. */
static void change_weights_only(struct fixture *f)
{
    add_costs(f);
    f->plan.problem.memory_model = MEMORY_WEIGHTS;
    for (unsigned r = 0; r < N_DEVICES; r++) {
        struct memory_items *items = &f->devices[r].memory;

        items->optimizer = items->input = items->outputs = 0;
        items->total = items->weights;
        f->memory[r] = items->weights;
    }
}

/* Counts memory as older plans with the item `io` do: 8 B per lookup and the
 * outputs of the shards. */
static void change_batch_only(struct fixture *f)
{
    static const uint64_t n_ids[N_DEVICES] = {
        3072 * 8 + 1152 * 8 + 9831 + 4916 + 768 * 8,
        3072 * 8 + 15354 + 7 + 14746 + 768 * 8,
        9831 + 768 * 8 + 3072 * 8 + 3072 * 8,
        2 * 3072 * 8 + 14746 + 768 * 8,
    };

    add_costs(f);
    f->plan.problem.memory_model = MEMORY_BATCH;
    for (unsigned r = 0; r < N_DEVICES; r++) {
        struct memory_items *items = &f->devices[r].memory;

        items->outputs += n_ids[r] - OWN_OUTPUTS;
        items->input = 0;
        items->total = items->weights + items->optimizer + items->outputs;
    }
}

/* Puts a single table of 1000 x 64 on device 0; precision, optimizer and output
 * vary. */
static void set_single(struct fixture *f, enum precision precision,
                       enum precision comm, enum optimizer optimizer,
                       enum table_output output, struct memory_items items)
{
    /* each device has a quarter of the samples; device 0 serves all of them */
    const uint64_t input = 640 * 8 + 512 * 4, outputs = items.outputs / 4;

    f->plan.problem.n_tables = 1;
    f->plan.n_shards = 1;
    f->tables[0].precision = precision;
    f->tables[0].comm_precision = comm;
    f->tables[0].optimizer = optimizer;
    f->tables[0].output = output;
    f->tables[0].pooling_factor = 2.5;
    f->tables[0].num_outputs = 2;
    for (unsigned r = 0; r < N_DEVICES; r++)
        f->devices[r].memory =
            (struct memory_items){.input = 3 * input,
                                  .outputs = outputs,
                                  .total = 3 * input + outputs};
    items.input = 4 * 4 * input;
    items.total = items.weights + items.optimizer + items.input + items.outputs;
    memory_add(&f->devices[0].memory, items);
    f->plan.devices = f->devices;
    f->plan.total_ms = 0;
    f->memory[0] = f->devices[0].memory.total;
}

static void change_fp16_adam(struct fixture *f)
{
    set_single(f, PRECISION_FP16, PRECISION_INT8, OPTIMIZER_ADAM, OUTPUT_POOLED,
               (struct memory_items){.weights = 128000,
                                     .optimizer = 256000,
                                     .outputs = 2 * 2048 * 64});
}

static void change_int8_sequence(struct fixture *f)
{
    set_single(
        f, PRECISION_INT8, PRECISION_BF16, OPTIMIZER_SGD, OUTPUT_SEQUENCE,
        (struct memory_items){.weights = 64000, .outputs = 2 * 2560 * 64 * 2});
}

static void change_adagrad(struct fixture *f)
{
    set_single(f, PRECISION_FP32, PRECISION_FP32, OPTIMIZER_ADAGRAD,
               OUTPUT_POOLED,
               (struct memory_items){.weights = 256000,
                                     .optimizer = 256000,
                                     .outputs = 2 * 2048 * 64 * 4});
}

/* NCCL's buffers use up the reserve first. */
static void change_nccl(struct fixture *f)
{
    add_costs(f);
    f->plan.problem.cluster.nccl_bytes = 1000;
    f->reserve[0] = 1500;
    f->reserve[1] = 400;
    f->devices[0].memory.nccl = 1000;
    f->devices[0].memory.reserve = 500;
    f->devices[0].memory.total += 1500;
    f->devices[1].memory.nccl = 400;
    f->devices[1].memory.total += 400;
}

/* The pipeline holds `delivered` batches as they arrive and `permuted` ones. */
static void set_pipeline(struct fixture *f, enum pipeline pipeline,
                         int delivered, int permuted)
{
    const int64_t input = 640 * 8 + 512 * 4;

    change_adagrad(f);
    f->plan.problem.job.pipeline = pipeline;
    for (unsigned r = 0; r < N_DEVICES; r++) {
        uint64_t more =
            (uint64_t)((delivered - 3 + (r ? 0 : 4 * (permuted - 4))) * input);

        f->devices[r].memory.input += more;
        f->devices[r].memory.total += more;
    }
    f->memory[0] = f->devices[0].memory.total;
}

static void change_no_pipeline(struct fixture *f)
{
    set_pipeline(f, PIPELINE_NONE, 1, 1);
}

static void change_prefetch(struct fixture *f)
{
    set_pipeline(f, PIPELINE_PREFETCH, 4, 6);
}

static void change_semisync(struct fixture *f)
{
    set_pipeline(f, PIPELINE_SEMISYNC, 4, 6);
}

/* Gives the replicas of 10 x 6 another optimizer than row-wise Adagrad, and
 * hence another state. */
static void set_dense(struct fixture *f, enum dense_optimizer optimizer,
                      uint64_t state_bytes)
{
    add_costs(f);
    f->plan.problem.dense_optimizer = optimizer;
    for (unsigned r = 0; r < N_DEVICES; r++) {
        struct memory_items *items = &f->devices[r].memory;

        items->optimizer = items->optimizer - 4 * 10 + state_bytes;
        items->total = items->total - 4 * 10 + state_bytes;
    }
}

static void change_dense_adam(struct fixture *f)
{
    set_dense(f, DENSE_ADAM, 2 * 10 * 6 * 4);
}

static void change_dense_adagrad(struct fixture *f)
{
    set_dense(f, DENSE_ADAGRAD, 10 * 6 * 4);
}

static void change_dense_sgd(struct fixture *f)
{
    set_dense(f, DENSE_SGD, 0);
}

static const struct legal_case legal_cases[] = {
    {"each kind once", change_nothing},
    {"priced", add_costs},
    {"not priced, memory counted", change_unpriced},
    {"a bound at the total", change_bound},
    {"sums of rounded parts", change_rounded},
    {"bins that add up to nearly 1", change_bins},
    {"a part a little below zero", change_negative_part},
    {"memory used to the last byte", change_memory_fits},
    {"shards in another order", change_reversed},
    {"a replica on the only device", change_one_device},
    {"memory of weights alone", change_weights_only},
    {"fp16 with Adam, int8 outputs", change_fp16_adam},
    {"int8, a sequence of bf16, SGD", change_int8_sequence},
    {"fp32 with Adagrad", change_adagrad},
    {"memory of a batch, as once", change_batch_only},
    {"NCCL's buffers", change_nccl},
    {"one batch", change_no_pipeline},
    {"a batch more", change_prefetch},
    {"and with semisync", change_semisync},
    {"replicas with Adam", change_dense_adam},
    {"replicas with Adagrad", change_dense_adagrad},
    {"replicas with SGD", change_dense_sgd},
};

static void test_legal(void)
{
    struct fixture f;

    for (size_t i = 0; i < sizeof(legal_cases) / sizeof(*legal_cases); i++) {
        struct err err = {0};

        fixture_init(&f);
        legal_cases[i].change(&f);
        if (!ok(!plan_check(&f.plan, &err), "legal: %s", legal_cases[i].name))
            printf("# %s\n", err.msg);
    }
}

struct broken_case {
    void (*change)(struct fixture *f);
    const char *want;
};

#define BREAK(name, body)                       \
    static void break_##name(struct fixture *f) \
    {                                           \
        body;                                   \
    }

BREAK(no_devices, f->plan.problem.cluster.n_devices = 0)
BREAK(no_hosts, f->plan.problem.cluster.devices_per_host = 0)
BREAK(uneven_hosts, f->plan.problem.cluster.devices_per_host = 3)
BREAK(larger_hosts, f->plan.problem.cluster.devices_per_host = 8)
BREAK(slow_hosts, f->plan.problem.cluster.intra_gbps = CLUSTER_MIN_GBPS / 2)
BREAK(fast_network, f->plan.problem.cluster.inter_gbps = 2 * CLUSTER_MAX_GBPS)
BREAK(uneven_domains, f->plan.problem.cluster.hosts_per_domain = 3)
BREAK(no_batch, f->plan.problem.batch = 0)
BREAK(no_tables, f->plan.problem.n_tables = 0)
BREAK(no_name, f->tables[2].name = "")
BREAK(null_name, f->tables[2].name = NULL)
BREAK(latin_name, f->tables[2].name = "caf\xe9")
BREAK(tab_name, f->tables[2].name = "a\tb")
BREAK(empty_group, f->tables[MATE].group = "")
BREAK(same_name, f->tables[5].name = "wide")
BREAK(no_rows, f->tables[0].num_embeddings = 0)
BREAK(no_columns, f->tables[0].dim = 0)
BREAK(bad_pooling, f->tables[1].pooling_factor = -1)
BREAK(nan_outputs, f->tables[1].num_outputs = NAN)
BREAK(inf_zipf, f->tables[1].zipf_alpha = INFINITY)
BREAK(steep_zipf, f->tables[1].zipf_alpha = 1e9)
BREAK(heavy_bins, f->tables[1].has_bins = true; f->tables[1].bins[0] = 0.75;
      f->tables[1].bins[3] = 0.5)
BREAK(light_bins, f->tables[1].has_bins = true; f->tables[1].bins[0] = 0.5;
      f->tables[1].bins[3] = 0.25)
BREAK(nearly_full_bins, f->tables[1].has_bins = true;
      f->tables[1].bins[0] = 0.985)
BREAK(empty_bins, f->tables[1].has_bins = true)
BREAK(bad_bin, f->tables[1].has_bins = true; f->tables[1].bins[16] = -0.5)
BREAK(pin_nowhere, f->tables[WHOLE].device = 4)
BREAK(no_such_table, f->shards[5].table = 7)
BREAK(no_such_device, f->shards[12].device = 9)
BREAK(no_rows_held, f->shards[4].row_end = 0)
BREAK(rows_beyond, f->shards[6].row_end = 4001)
BREAK(no_columns_held, f->shards[2].col_begin = 64)
BREAK(columns_beyond, f->shards[1].col_end = 132)
BREAK(table_missing, f->shards[0].table = WIDE)
BREAK(hole_in_columns, f->shards[3].col_begin = 68)
BREAK(overlap_in_columns, f->shards[3].col_end = 100)
BREAK(hole_in_rows, f->shards[5].row_end = 3998)
BREAK(overlap_in_rows, f->shards[5].row_begin = 1499)
BREAK(whole_twice, f->shards[f->plan.n_shards] = f->shards[0];
      f->shards[f->plan.n_shards++].device = 1)
/* a hole and an overlap: area and bounding box equal those of the pinwheel */
BREAK(hole_and_overlap, f->shards[11].row_begin = 200;
      f->shards[11].row_end = 400)
BREAK(kind_of_one, f->shards[2].kind = SHARD_TABLE)
BREAK(kind_table, f->shards[0].kind = SHARD_COLUMN)
BREAK(kind_none, f->shards[0].kind = (enum shard_kind)0)
BREAK(kind_grid, f->shards[7].kind = SHARD_ROW)
BREAK(replica_cut, f->shards[0].kind = SHARD_REPLICATE; f->shards[0].row_end--)
BREAK(replica_missing, f->shards[13].table = WHOLE)
BREAK(replica_alone, f->shards[0].kind = SHARD_REPLICATE)
BREAK(replica_twice, f->shards[15].device = 0)
BREAK(replica_as_table, f->shards[14].kind = SHARD_TABLE)
BREAK(kind_of_table, f->tables[WIDE].kinds = SHARD_TABLE | SHARD_ROW)
BREAK(kind_of_problem, f->plan.problem.kinds &= ~(unsigned)SHARD_GRID)
BREAK(odd_width, f->shards[2].col_end = 62; f->shards[3].col_begin = 62)
BREAK(pin, f->tables[WIDE].device = 3)
BREAK(group_spread, f->tables[TALL].group = "pals")
BREAK(group_apart, f->shards[17].device = 3)
BREAK(group_between, f->tables[WHOLE].group = "pals";
      f->tables[FRIEND].group = "others")
BREAK(memory, f->memory[1] = 1u << 20)
BREAK(reserve, f->reserve[2] = 16u << 20)
BREAK(huge_rows, f->tables[WHOLE].num_embeddings = UINT64_MAX;
      f->shards[0].row_end = UINT64_MAX)
BREAK(stored_memory, add_costs(f); f->devices[3].memory.input += 100)
BREAK(stored_outputs, add_costs(f); f->devices[3].memory.outputs -= 100)
BREAK(stored_nccl, add_costs(f); f->devices[3].memory.nccl = 1)
BREAK(stored_reserve, add_costs(f); f->devices[3].memory.reserve = 1)
BREAK(inf_shard, add_costs(f); f->shard_ms[5] = INFINITY)
BREAK(inf_bound, add_costs(f); f->plan.bound_ms = -INFINITY)
BREAK(half_priced, add_costs(f); f->plan.total_ms = NAN)
BREAK(inf_total, add_costs(f); f->plan.total_ms = INFINITY)
BREAK(negative_total, add_costs(f); f->plan.total_ms = -1)
BREAK(nan_part, add_costs(f); f->devices[1].fwd_comm_ms = NAN)
BREAK(negative_part, add_costs(f); f->devices[1].fwd_comm_ms = -9)
BREAK(negative_compute, add_costs(f); f->devices[1].compute_ms = -9)
BREAK(inf_bwd_comm, add_costs(f); f->devices[1].bwd_comm_ms = INFINITY)
BREAK(sum, add_costs(f); f->devices[1].fwd_comm_ms = 4.6)
BREAK(nan_total, add_costs(f); f->devices[1].total_ms = NAN)
BREAK(rounded_sum, add_costs(f);
      f->devices[1].total_ms = f->plan.total_ms = 8.75 * (1 + 1.3e-6))
BREAK(rounded_total, add_costs(f); f->plan.total_ms = 8.75 * (1 + 1.3e-6))
BREAK(rounded_bound, add_costs(f); f->plan.bound_ms = 8.75 * (1 + 1.3e-6))
BREAK(total, add_costs(f); f->plan.total_ms = 8.76)
BREAK(bound, add_costs(f); f->plan.bound_ms = 8.7501)

#define NO_BANDWIDTH \
    "a bandwidth of the cluster is outside 0.001 to 1000000 GB/s"

static const struct broken_case broken_cases[] = {
    {break_no_devices, "the cluster has no GPUs"},
    {break_no_hosts, "the cluster has no GPUs per host"},
    {break_slow_hosts, NO_BANDWIDTH},
    {break_fast_network, NO_BANDWIDTH},
    {break_uneven_hosts, "4 GPUs do not fill whole hosts of 3 GPUs each"},
    {break_larger_hosts, "4 GPUs do not fill whole hosts of 8 GPUs each"},
    {break_uneven_domains,
     "2 hosts do not fill whole NVLink domains of 3 hosts each"},
    {break_no_batch, "the batch is empty"},
    {break_no_tables, "the plan has no tables"},
    {break_no_name, "tables[2] has an empty name"},
    {break_null_name, "tables[2] has an empty name"},
    {break_latin_name, "tables[2]: its name 'caf\\xe9' is not printable"},
    {break_tab_name, "tables[2]: its name 'a\\u0009b' is not printable"},
    {break_empty_group, "tables[6] has an empty group"},
    {break_same_name, "tables[1] and tables[5] are both named 'wide'"},
    {break_no_rows, "table 'whole' has no rows"},
    {break_no_columns, "table 'whole' has no columns"},
    {break_bad_pooling,
     "table 'wide': pooling_factor -1 is not a finite number >= 0"},
    {break_nan_outputs,
     "table 'wide': num_outputs nan is not a finite number >= 0"},
    {break_inf_zipf,
     "table 'wide': zipf_alpha inf is not a finite number >= 0"},
    {break_steep_zipf, "table 'wide': zipf_alpha 1e+09 is above 100"},
    {break_heavy_bins, "table 'wide': its bins add up to 1.25, not to 1"},
    {break_light_bins, "table 'wide': its bins add up to 0.75, not to 1"},
    {break_nearly_full_bins,
     "table 'wide': its bins add up to 0.985, not to 1"},
    {break_empty_bins, "table 'wide': its bins add up to 0, not to 1"},
    {break_bad_bin, "table 'wide': a bin of -0.5 is not a finite number >= 0"},
    {break_pin_nowhere,
     "table 'whole' is pinned to GPU 4, but there are 4 GPUs"},
    {break_no_such_table, "shards[5].table is 7, but there are 7 tables"},
    {break_no_such_device, "shards[12].device is 9, but there are 4 GPUs"},
    {break_no_rows_held,
     "shards[4] holds rows 0 to 0 of table 'tall', which has 4000"},
    {break_rows_beyond,
     "shards[6] holds rows 3999 to 4001 of table 'tall', which has 4000"},
    {break_no_columns_held,
     "shards[2] holds columns 64 to 64 of table 'wide', which has 128"},
    {break_columns_beyond,
     "shards[1] holds columns 96 to 132 of table 'wide', which has 128"},
    {break_table_missing, "table 'whole' has no shards"},
    {break_hole_in_columns, "table 'wide': row 0, column 64 is in no shard"},
    {break_overlap_in_columns,
     "table 'wide': row 0, column 96 is in two shards, on GPU 3 and on GPU 3"},
    {break_hole_in_rows, "table 'tall': row 3998, column 0 is in no shard"},
    {break_overlap_in_rows, "table 'tall': row 1499, column 0 is in two "
                            "shards, on GPU 0 and on GPU 1"},
    {break_whole_twice,
     "table 'whole': row 0, column 0 is in two shards, on GPU 0 and on GPU 1"},
    {break_hole_and_overlap, "table 'square': row 200, column 20 is in two "
                             "shards, on GPU 0 and on GPU 0"},
    {break_kind_of_one,
     "shards[2].kind is 'table', but the shards of table 'wide' are of kind "
     "'column'"},
    {break_kind_table,
     "shards[0].kind is 'column', but the shards of table 'whole' are of kind "
     "'table'"},
    {break_kind_none,
     "shards[0].kind is 'none', but the shards of table 'whole' are of kind "
     "'table'"},
    {break_kind_grid,
     "shards[7].kind is 'row', but the shards of table 'square' are of kind "
     "'grid'"},
    {break_replica_cut,
     "table 'whole' is replicated, but shards[0] is not whole"},
    {break_replica_missing,
     "table 'whole' is replicated, but shards[13] is not whole"},
    {break_replica_alone,
     "table 'whole' is replicated, but GPU 1 has 0 copies"},
    {break_replica_twice,
     "table 'small' is replicated, but GPU 0 has 2 copies"},
    {break_replica_as_table,
     "shards[14].kind is 'table', but the shards of table 'small' are of kind "
     "'replicate'"},
    {break_kind_of_table, "table 'wide' may not have shards of kind 'column'"},
    {break_kind_of_problem,
     "table 'square' has shards of kind 'grid', which the plan's problem does "
     "not allow"},
    {break_odd_width,
     "shards[2] holds 62 columns of table 'wide', not a multiple of 4"},
    {break_pin, "table 'wide' is pinned to GPU 3, but shards[2] is on GPU 1"},
    {break_group_spread, "table 'tall' of group 'pals' is on GPUs 0 and 1, but "
                         "a group stays on one GPU"},
    {break_group_apart,
     "tables 'friend' and 'mate' of group 'pals' are on GPUs 2 and 3"},
    {break_group_between,
     "tables 'whole' and 'mate' of group 'pals' are on GPUs 0 and 2"},
    {break_memory, "GPU 1 needs 3.17 MiB, 2.17 MiB more than it has: weights "
                   "869 KiB, optimizer 20.0 KiB, input 494 KiB, outputs 1.82 "
                   "MiB, nccl 0 B, reserve 0 B; the largest item is outputs"},
    {break_reserve,
     "GPU 2 needs 17.7 MiB, 1.68 MiB more than it has: weights 82.3 KiB, "
     "optimizer 2.77 KiB, input 467 KiB, outputs 1.14 MiB, nccl 0 B, reserve "
     "16.0 MiB; the largest item is reserve"},
    {break_huge_rows,
     "GPU 0 needs 16.0 EiB, 16.0 EiB more than it has: weights 16.0 EiB, "
     "optimizer 16.0 EiB, input 464 KiB, outputs 1.85 MiB, nccl 0 B, reserve 0 "
     "B; the largest item is weights"},
    {break_stored_memory,
     "devices[3].memory_bytes does not agree with its shards: weights 560240, "
     "optimizer 18440, input 502784, outputs 1347824, nccl 0, reserve 0, total "
     "2429288"},
    {break_stored_outputs,
     "devices[3].memory_bytes does not agree with its shards: weights 560240, "
     "optimizer 18440, input 502784, outputs 1347824, nccl 0, reserve 0, total "
     "2429288"},
    {break_stored_nccl,
     "devices[3].memory_bytes does not agree with its shards: weights 560240, "
     "optimizer 18440, input 502784, outputs 1347824, nccl 0, reserve 0, total "
     "2429288"},
    {break_stored_reserve,
     "devices[3].memory_bytes does not agree with its shards: weights 560240, "
     "optimizer 18440, input 502784, outputs 1347824, nccl 0, reserve 0, total "
     "2429288"},
    {break_inf_shard, "shards[5]: a cost of inf ms is not a valid time"},
    {break_inf_bound, "the lower bound of -inf ms is not a valid time"},
    {break_half_priced, "GPU 0 has a cost, but the plan has no total"},
    {break_inf_total, "the plan's total of inf ms is not a valid time"},
    {break_negative_total, "the plan's total of -1 ms is not a valid time"},
    {break_nan_part, "GPU 1 has no cost, but the plan has a total"},
    {break_negative_part, "GPU 1: a cost of -9 ms is not a valid time"},
    {break_negative_compute, "GPU 1: a cost of -9 ms is not a valid time"},
    {break_inf_bwd_comm, "GPU 1: a cost of inf ms is not a valid time"},
    {break_sum, "GPU 1: its total is 8.75 ms, but its parts add up to 8.85 ms"},
    {break_rounded_sum,
     "GPU 1: its total is 8.75001138 ms, but its parts add up to 8.75 ms"},
    {break_rounded_total, "the plan's total is 8.75001138 ms, but its slowest "
                          "GPU takes 8.75 ms"},
    {break_rounded_bound, "the lower bound of 8.75001138 ms is above the "
                          "plan's total of 8.75 ms"},
    {break_nan_total, "GPU 1 has no cost, but the plan has a total"},
    {break_total,
     "the plan's total is 8.76 ms, but its slowest GPU takes 8.75 ms"},
    {break_bound,
     "the lower bound of 8.7501 ms is above the plan's total of 8.75 ms"},
};

static void test_broken(void)
{
    struct fixture f;

    for (size_t i = 0; i < sizeof(broken_cases) / sizeof(*broken_cases); i++) {
        struct err err = {0};
        const char *want = broken_cases[i].want;
        bool is_memory = strstr(want, "more than it has");

        fixture_init(&f);
        broken_cases[i].change(&f);
        ok(plan_check(&f.plan, &err) == -1 &&
               err.code == (is_memory ? ERR_NO_PLAN : ERR_INPUT),
           "refused: %s", want);
        is_str(err.msg, want, "its sentence");
    }
}

/* Cuts a table repeatedly at random places. The pieces must tile the table.
 * They must be refused after one piece is moved by one row or removed. */
static void test_random_tilings(void)
{
    struct rng rng;
    struct shard shards[64];
    struct table table;
    uint64_t memory = UINT64_MAX, reserve = 0;
    int n_wrong = 0;

    rng_init(&rng, 7, 0);
    table_init(&table);
    table.name = "t";
    table.num_embeddings = 1u << 20;
    table.dim = 4096;
    for (int round = 0; round < 500; round++) {
        struct plan plan = {
            .problem = {.tables = &table,
                        .n_tables = 1,
                        .batch = 1,
                        .kinds = SHARD_ALL_KINDS,
                        .cluster = {.n_devices = 1,
                                    .devices_per_host = 1,
                                    .memory_bytes = &memory,
                                    .reserve_bytes = &reserve}},
            .shards = shards,
            .n_shards = 1,
        };
        size_t n = 2 + rng_below(&rng, 60), victim;
        struct err err = {0};

        shards[0] =
            (struct shard){.row_end = table.num_embeddings, .col_end = 4096};
        while (plan.n_shards < n) {
            struct shard *a = &shards[rng_below(&rng, plan.n_shards)];
            struct shard *b = &shards[plan.n_shards];

            *b = *a;
            if (rng_below(&rng, 2) && a->row_end - a->row_begin > 8) {
                a->row_end = b->row_begin =
                    a->row_begin + 1 +
                    rng_below(&rng, a->row_end - a->row_begin - 1);
            } else if (a->col_end - a->col_begin > 8) {
                uint32_t n_cuts = (a->col_end - a->col_begin) / 4 - 1;

                a->col_end = b->col_begin =
                    a->col_begin + 4 + 4 * (uint32_t)rng_below(&rng, n_cuts);
            } else {
                continue;
            }
            plan.n_shards++;
        }
        plan_derive_kinds(&plan);
        n_wrong += plan_check(&plan, &err) != 0;
        victim = rng_below(&rng, n);
        shards[victim].row_end -= shards[victim].row_end > 1;
        n_wrong += shards[victim].row_end > shards[victim].row_begin &&
                   plan_check(&plan, &err) == 0;
        shards[victim] = shards[--plan.n_shards];
        n_wrong += plan_check(&plan, &err) == 0;
    }
    is_i64(n_wrong, 0, "500 random tilings, seed 7: legal until one is moved");
}

/* Row blocks that must be over all devices, or over one host's, are accepted
 * only on exactly these devices, in order. A plan with one block on another
 * device is refused. */
static void test_rows_over(void)
{
    enum { N = 8, HOST = 4 };
    uint64_t memory[N], reserve[N] = {0};
    struct shard shards[N];
    struct table table;
    struct plan plan = {.problem = {.tables = &table,
                                    .n_tables = 1,
                                    .batch = 1,
                                    .kinds = SHARD_ALL_KINDS,
                                    .cluster = {.n_devices = N,
                                                .devices_per_host = HOST,
                                                .memory_bytes = memory,
                                                .reserve_bytes = reserve}},
                        .shards = shards};
    unsigned n_wrong = 0;

    for (int r = 0; r < N; r++)
        memory[r] = UINT64_MAX;
    table_init(&table);
    table.name = "t";
    table.num_embeddings = 8000;
    table.dim = 4;
    for (uint32_t n = HOST; n <= N; n += HOST)
        for (uint32_t first = 0; first + n <= N; first += HOST)
            for (uint32_t moved = 0; moved <= n; moved++) {
                struct err err = {0};

                plan.n_shards = n;
                for (uint32_t b = 0; b < n; b++)
                    shards[b] = (struct shard){
                        0, SHARD_ROW, 8000 / n * b, 8000 / n * (b + 1),
                        0, 4,         first + b,    TIER_HBM};
                if (moved < n)
                    shards[moved].device = (first + moved + 1) % N;
                table.rows_over = ROWS_OVER_ANY;
                n_wrong += plan_check(&plan, &err) != 0;
                table.rows_over = n == N ? ROWS_OVER_ALL : ROWS_OVER_HOST;
                n_wrong += !plan_check(&plan, &err) != (moved == n);
                for (uint32_t b = 0; b < n / 2; b++) {
                    const struct shard kept = shards[b];

                    shards[b] = shards[n - 1 - b];
                    shards[n - 1 - b] = kept;
                }
                n_wrong += !plan_check(&plan, &err) != (moved == n);
                table.rows_over = n == N ? ROWS_OVER_HOST : ROWS_OVER_ALL;
                n_wrong += !plan_check(&plan, &err);
            }
    is_i64(n_wrong, 0,
           "rows over all, or a host: in their places alone, in any order");
}

/* 10,000 tables in 100,000 shards, and one table in 100,000 shards. */
static void test_large(void)
{
    enum { N = 10000, CUTS = 10 };
    struct table *tables = mem_alloc(N, sizeof(*tables));
    struct shard *shards = mem_alloc(N * CUTS, sizeof(*shards));
    char(*names)[16] = mem_alloc(N, sizeof(*names));
    uint64_t memory[8], reserve[8] = {0};
    struct plan plan = {
        .problem = {.tables = tables,
                    .n_tables = N,
                    .batch = 65536,
                    .kinds = SHARD_ALL_KINDS,
                    .cluster = {.n_devices = 8,
                                .devices_per_host = 8,
                                .memory_bytes = memory,
                                .reserve_bytes = reserve}},
        .shards = shards,
        .n_shards = N * CUTS,
    };
    struct err err = {0};
    double start_ms;

    for (int r = 0; r < 8; r++)
        memory[r] = UINT64_MAX;
    for (uint32_t t = 0; t < N; t++) {
        table_init(&tables[t]);
        snprintf(names[t], sizeof(names[t]), "table_%u", t);
        tables[t].name = names[t];
        tables[t].num_embeddings = 1000;
        tables[t].dim = 40;
        for (uint32_t c = 0; c < CUTS; c++)
            shards[t + c * N] =
                (struct shard){t,     SHARD_COLUMN, 0,           1000,
                               4 * c, 4 * c + 4,    (t + c) % 8, TIER_HBM};
    }
    start_ms = clock_ms();
    ok(!plan_check(&plan, &err), "10,000 tables in 100,000 shards");
    printf("# %.1f ms\n", clock_ms() - start_ms);

    plan.problem.n_tables = 1;
    tables[0].num_embeddings = N;
    for (uint32_t i = 0; i < N * CUTS; i++)
        shards[i] = (struct shard){0,
                                   SHARD_GRID,
                                   i / CUTS,
                                   i / CUTS + 1,
                                   i % CUTS * 4,
                                   i % CUTS * 4 + 4,
                                   i % 8,
                                   TIER_HBM};
    start_ms = clock_ms();
    ok(!plan_check(&plan, &err), "one table in 100,000 shards");
    printf("# %.1f ms\n", clock_ms() - start_ms);
    mem_free(names);
    mem_free(shards);
    mem_free(tables);
}

int main(void)
{
    test_legal();
    test_broken();
    test_random_tilings();
    test_rows_over();
    test_large();
    return tap_done();
}
