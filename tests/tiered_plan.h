/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_TIERED_PLAN_H
#define NEUROSHARD_TESTS_TIERED_PLAN_H

/*
 * A small plan with tables in all tiers, on 4 GPUs in 2 hosts. It lives in
 * fixed arrays, so that each case starts from a fresh copy. Include in one file
 * only.
 *
 *     table    rows x dim  tier    pieces
 *     hot      1000 x 16   hbm     whole, on GPU 0
 *     small    40 x 8      hbm     replicas
 *     wide     2000 x 64   cached  columns 0-32 on GPU 0, 32-64 on GPU 1
 *     whole    500 x 16    cached  whole, on GPU 0
 *     tall     4000 x 32   cached  rows over all 4 GPUs
 *     words    3000 x 32   cached  whole, on GPU 1; a sequence
 *     cold     6000 x 64   host    whole, on GPU 2
 */

#include <math.h>
#include <string.h>

#include "core/plan.h"

#define TIERED_DEVICES 4
enum { HOT, SMALL, WIDE, WHOLE, TALL, WORDS, COLD, TIERED_TABLES };
/* Index in plan.shards of the first piece of each table. */
enum {
    AT_HOT,
    AT_SMALL,
    AT_WIDE = AT_SMALL + TIERED_DEVICES,
    AT_WHOLE = AT_WIDE + 2,
    AT_TALL,
    AT_WORDS = AT_TALL + TIERED_DEVICES,
    AT_COLD,
    TIERED_SHARDS
};

struct tiered_plan {
    struct table tables[TIERED_TABLES];
    struct shard shards[TIERED_SHARDS];
    double load_factors[TIERED_TABLES];
    uint64_t memory[TIERED_DEVICES], reserve[TIERED_DEVICES];
    struct plan plan;
};

static void tiered_table(struct tiered_plan *tiered, unsigned t,
                         const char *name, uint64_t rows, uint32_t dim)
{
    table_init(&tiered->tables[t]);
    tiered->tables[t].name = name;
    tiered->tables[t].num_embeddings = rows;
    tiered->tables[t].dim = dim;
    tiered->tables[t].pooling_factor = 2;
}

static void tiered_shards(struct shard *shards)
{
    shards[AT_HOT] =
        (struct shard){HOT, SHARD_TABLE, 0, 1000, 0, 16, 0, TIER_HBM};
    for (uint32_t r = 0; r < TIERED_DEVICES; r++)
        shards[AT_SMALL + r] =
            (struct shard){SMALL, SHARD_REPLICATE, 0, 40, 0, 8, r, TIER_HBM};
    for (uint32_t i = 0; i < 2; i++)
        shards[AT_WIDE + i] = (struct shard){
            WIDE, SHARD_COLUMN, 0, 2000, 32 * i, 32 * i + 32, i, TIER_CACHED};
    shards[AT_WHOLE] =
        (struct shard){WHOLE, SHARD_TABLE, 0, 500, 0, 16, 0, TIER_CACHED};
    for (uint32_t r = 0; r < TIERED_DEVICES; r++)
        shards[AT_TALL + r] = (struct shard){
            TALL, SHARD_ROW, 1000 * r, 1000 * r + 1000, 0, 32, r, TIER_CACHED};
    shards[AT_WORDS] =
        (struct shard){WORDS, SHARD_TABLE, 0, 3000, 0, 32, 1, TIER_CACHED};
    shards[AT_COLD] =
        (struct shard){COLD, SHARD_TABLE, 0, 6000, 0, 64, 2, TIER_HOST};
}

static void tiered_plan_init(struct tiered_plan *tiered)
{
    memset(tiered, 0, sizeof(*tiered));
    tiered_table(tiered, HOT, "hot", 1000, 16);
    tiered_table(tiered, SMALL, "small", 40, 8);
    tiered_table(tiered, WIDE, "wide", 2000, 64);
    tiered_table(tiered, WHOLE, "whole", 500, 16);
    tiered_table(tiered, TALL, "tall", 4000, 32);
    tiered_table(tiered, WORDS, "words", 3000, 32);
    tiered_table(tiered, COLD, "cold", 6000, 64);
    tiered->tables[WORDS].output = OUTPUT_SEQUENCE;
    tiered_shards(tiered->shards);
    tiered->load_factors[WIDE] = 0.1;
    tiered->load_factors[WHOLE] = 0.5;
    tiered->load_factors[TALL] = 0.25;
    tiered->load_factors[WORDS] = 0.02;
    for (unsigned r = 0; r < TIERED_DEVICES; r++)
        tiered->memory[r] = 64u << 20;
    tiered->plan =
        (struct plan){.problem = {.tables = tiered->tables,
                                  .n_tables = TIERED_TABLES,
                                  .cluster = {.n_devices = TIERED_DEVICES,
                                              .devices_per_host = 2,
                                              .memory_bytes = tiered->memory,
                                              .reserve_bytes = tiered->reserve,
                                              .host_bytes = 16u << 20},
                                  .kinds = SHARD_ALL_KINDS,
                                  .batch = 256,
                                  .layout = LAYOUT_FBGEMM,
                                  .buffers = BUFFERS_TRACED},
                      .shards = tiered->shards,
                      .n_shards = TIERED_SHARDS,
                      .load_factors = tiered->load_factors,
                      .total_ms = NAN,
                      .bound_ms = NAN};
}

#endif
