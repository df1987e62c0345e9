/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_SEARCH_STANDING_H
#define NEUROSHARD_TESTS_UNIT_SEARCH_STANDING_H

/* A current plan of seven tables on six devices, with every kind of shard. The
 * tables have grown or shrunk since, and the devices have the requested memory.
 * Include in one file only. */

#include "search/carry_over.h"
#include "search/evaluator.h"
#include "search/space_init.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define STANDING_TABLES 7
#define STANDING_GPUS 6

/* The current plan, and an assignment that starts from it. */
struct standing {
    struct arena arena;
    struct rng rng;
    struct problem old, problem;
    struct random_oracle oracle;
    struct plan from;
    struct search_space space;
    struct current_plan current;
    struct snapshot nearest;
    struct evaluator evaluator;
};

/* Places a grid, row blocks, columns, a replica and whole tables, two of which
 * form a group. If row blocks must be those of a host, there are three hosts of
 * two devices. */
static void place(struct standing *standing)
{
    const struct shard shards[] = {
        {0, SHARD_GRID, 0, 500, 0, 32, 2, TIER_HBM},
        {0, SHARD_GRID, 500, 1000, 0, 32, 3, TIER_HBM},
        {0, SHARD_GRID, 0, 500, 32, 64, 0, TIER_HBM},
        {0, SHARD_GRID, 500, 1000, 32, 64, 1, TIER_HBM},
        {1, SHARD_ROW, 0, 1000, 0, 16, 4, TIER_HBM},
        {1, SHARD_ROW, 1000, 2000, 0, 16, 5, TIER_HBM},
        {2, SHARD_COLUMN, 0, 500, 0, 60, 1, TIER_HBM},
        {2, SHARD_COLUMN, 0, 500, 60, 128, 5, TIER_HBM},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 0, TIER_HBM},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 1, TIER_HBM},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 2, TIER_HBM},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 3, TIER_HBM},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 4, TIER_HBM},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 5, TIER_HBM},
        {4, SHARD_TABLE, 0, 3000, 0, 16, 0, TIER_HBM},
        {5, SHARD_TABLE, 0, 70, 0, 8, 1, TIER_HBM},
        {6, SHARD_TABLE, 0, 900, 0, 64, 1, TIER_HBM},
    };

    standing->from =
        fake_plan(&standing->old, shards, sizeof shards / sizeof *shards,
                  &standing->arena);
}

static void standing_open(struct standing *standing, uint64_t seed,
                          enum row_cut row_cut, double growth,
                          uint64_t memory_bytes)
{
    const uint64_t rows[STANDING_TABLES] = {1000, 2000, 500, 40, 3000, 70, 900};
    const uint32_t dims[STANDING_TABLES] = {64, 16, 128, 32, 16, 8, 64};
    struct err err = {0};

    *standing = (struct standing){0};
    rng_init(&standing->rng, seed, 5);
    fake_problem(&standing->old, rows, dims, STANDING_TABLES, STANDING_GPUS,
                 memory_bytes, &standing->arena);
    standing->old.cluster.devices_per_host = 2;
    standing->old.tables[5].group = standing->old.tables[6].group = "pair";
    place(standing);
    standing->problem = standing->old;
    standing->problem.tables =
        ARENA_NEW(&standing->arena, struct table, STANDING_TABLES);
    for (size_t t = 0; t < STANDING_TABLES; t++) {
        standing->problem.tables[t] = standing->old.tables[t];
        standing->problem.tables[t].num_embeddings =
            (uint64_t)((double)rows[t] * growth);
    }
    random_oracle_init(&standing->oracle, &standing->problem, &standing->rng);
    standing->oracle.base.row_cut = row_cut;
    current_init(&standing->current, &standing->problem, &standing->from,
                 &standing->arena);
    ok(!space_init(&standing->space, &standing->problem, &standing->oracle.base,
                   &standing->current, NULL, &standing->arena, &err),
       "a problem: %s", err.msg);
    carry_over(&standing->nearest, &standing->space);
    current_keep_nearest(&standing->current, &standing->nearest,
                         &standing->space, &standing->arena);
    evaluator_init(&standing->evaluator, &standing->space);
    standing->evaluator.assignment.move_limit_bytes = COUNT_MOVES;
    snapshot_load(&standing->nearest, &standing->evaluator.assignment);
}

static void standing_close(struct standing *standing)
{
    evaluator_release(&standing->evaluator);
    snapshot_release(&standing->nearest);
    arena_release(&standing->arena);
}

#endif
