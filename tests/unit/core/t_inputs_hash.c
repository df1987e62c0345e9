/* SPDX-License-Identifier: MIT */
/* Hashes of inputs never change, so that plans written long ago stay valid. The
 * test hashes a plain problem, and the same problem with each member changed
 * alone. */
#include "core/plan.h"
#include "tests/tap.h"

static struct table tables[2];
static uint64_t memory[2], reserve[2];
static struct plan plan;

static void init(void)
{
    for (unsigned t = 0; t < 2; t++) {
        table_init(&tables[t]);
        tables[t].name = t ? "b" : "a";
        tables[t].num_embeddings = 1000 * (t + 1);
        tables[t].dim = 16u << t;
        tables[t].pooling_factor = 2.5 + t;
        memory[t] = 1000000000 + t;
        reserve[t] = 1000 + t;
    }
    plan = (struct plan){
        .problem = {.tables = tables,
                    .n_tables = 2,
                    .batch = 4096,
                    .kinds = SHARD_TABLE | SHARD_COLUMN,
                    .memory_model = MEMORY_FULL,
                    .dense_optimizer = DENSE_ADAM,
                    .layout = LAYOUT_PLAIN,
                    .buffers = BUFFERS_COPIES,
                    .job.pipeline = PIPELINE_SDD,
                    .cluster = {.n_devices = 2,
                                .devices_per_host = 2,
                                .memory_bytes = memory,
                                .reserve_bytes = reserve}},
        .cost.hash = "0123456789abcdef",
    };
}

static struct table *const table = &tables[0];
static struct problem *const problem = &plan.problem;

/* Each change and the hash that results. */
#define CHANGES(CHANGE)                                                      \
    CHANGE((void)0, "5e817487f194efd5")                                      \
    CHANGE(table->name = "c", "b592944d86eb2a42")                            \
    CHANGE(table->num_embeddings++, "99131802a8dd7fb6")                      \
    CHANGE(table->dim = 8, "657d03fb45572ff4")                               \
    CHANGE(table->pooling_factor = 3, "471513726409a1ad")                    \
    CHANGE(table->num_outputs = 2, "b73b9b71c3e5edd2")                       \
    CHANGE(table->output = OUTPUT_SEQUENCE, "50a02b53bc9493f5")              \
    CHANGE(table->precision = PRECISION_FP16, "b223768c268ea684")            \
    CHANGE(table->comm_precision = PRECISION_FP16, "d7c8cccf4e2b4bf8")       \
    CHANGE(table->optimizer = OPTIMIZER_SGD, "247bb21f50bb7cc5")             \
    CHANGE(table->kinds = SHARD_TABLE, "78722c3210ce564b")                   \
    CHANGE(table->device = 1, "a734c4ec8b15ccea")                            \
    CHANGE(table->group = "g", "3f0b1d6ac0648479")                           \
    CHANGE(table->row_order = ROW_ORDER_FREQUENCY, "e5a9afb656e5cd05")       \
    CHANGE(table->dedup = 0.5, "ead0db0747a2db04")                           \
    CHANGE(table->row_overhead_bytes = 12, "77da266415fd9693")               \
    CHANGE(table->min_width = 8, "2cd58282e1c3e454")                         \
    CHANGE(table->forward_factor = 2, "a33faee44d1b6cfb")                    \
    CHANGE(table->backward_factor = 2, "06e3b7add4ef8e43")                   \
    CHANGE(table->rows_over = ROWS_OVER_HOST, "b64b1a5e715f6cd8")            \
    CHANGE(table->zipf_alpha = 0, "058ba63cc417a1d0")                        \
    CHANGE(table->zipf_alpha = -0.0, "058ba63cc417a1d0")                     \
    CHANGE((table->has_bins = true, table->bins[1] = 1), "ce3a2242e4d18544") \
    CHANGE(problem->n_tables = 1, "314479f5cd299c98")                        \
    CHANGE(problem->cluster.n_devices = 1, "2bc092966ef64c2f")               \
    CHANGE(problem->cluster.devices_per_host = 1, "e7889fd83d5c9b9c")        \
    CHANGE(problem->cluster.hosts_per_domain = 1, "5e817487f194efd5")        \
    CHANGE(problem->cluster.hosts_per_domain = 2, "61d05cbbb99d406f")        \
    CHANGE(memory[1]++, "8c8b35cb88c0557f")                                  \
    CHANGE(reserve[1]++, "d667a1d77f41e704")                                 \
    CHANGE(problem->cluster.intra_gbps = 100, "8f03b116e9272942")            \
    CHANGE(problem->cluster.inter_gbps = 100, "fd016eefd6fbbddf")            \
    CHANGE(problem->batch++, "61513916e8cdf713")                             \
    CHANGE(problem->memory_model = MEMORY_WEIGHTS, "1bbe7d85ac407cae")       \
    CHANGE(problem->dense_optimizer = DENSE_SGD, "be65d8f03c8ba199")         \
    CHANGE(problem->layout = LAYOUT_FBGEMM, "8a43269d63984801")              \
    CHANGE(problem->buffers = BUFFERS_TRACED, "4cbe8054bdb3fa27")            \
    CHANGE(problem->min_width = 4, "5e817487f194efd5")                       \
    CHANGE(problem->min_width = 8, "ee75c7f77e1d19c9")                       \
    CHANGE(problem->kinds = SHARD_TABLE, "95ed1399cc14c396")                 \
    CHANGE(problem->job.pipeline = PIPELINE_NONE, "e17655270d0c952a")        \
    CHANGE(problem->job.n_chunks = 1, "5e817487f194efd5")                    \
    CHANGE(problem->job.n_chunks = 4, "5b26655a6d74a5dd")                    \
    CHANGE(problem->job.dense_ms[0] = 1, "6f372e95aaeb2b98")                 \
    CHANGE(problem->job.dense_ms[1] = 1, "80b7345d7163fa4e")                 \
    CHANGE(problem->job.dedup = DEDUP_SESSIONS, "c01f65ee09fc5f8a")          \
    CHANGE(problem->job.host_ms = 1, "5e817487f194efd5")                     \
    CHANGE((problem->job.asks_host = true, problem->job.host_ms = 1),        \
           "86ac87fbdfb4a962")                                               \
    CHANGE(plan.cost.hash = "00", "7c7742e02c0708ca")                        \
    CHANGE(plan.cost.hash = NULL, "6f8dd3602dd73f25")

static void same(const char *got, const char *want, const char *name)
{
    if (!ok(!strcmp(got, want), "%s", name))
        printf("---\n%s---\n", got);
}

#define TRY(change, want) \
    init();               \
    change;               \
    same(plan_inputs_hash(&plan, &arena), want, #change);

int main(void)
{
    struct arena arena = {0};

    CHANGES(TRY)
    arena_release(&arena);
    return tap_done();
}
