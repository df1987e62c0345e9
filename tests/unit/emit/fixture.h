/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_EMIT_FIXTURE_H
#define NEUROSHARD_TESTS_UNIT_EMIT_FIXTURE_H

/* Plans made by hand, in one arena. Include in one file only. */

#include <math.h>

#include "base/mem.h"
#include "core/plan.h"
#include "core/plan_check.h"
#include "tests/tap.h"

#define FIXTURE_MAX_TABLES 64
#define FIXTURE_MAX_SHARDS 1024

static struct arena arena;

__attribute__((unused)) static struct plan
fixture_plan(uint32_t n_devices, uint32_t per_host, uint64_t batch)
{
    struct plan plan = {
        .problem =
            {
                .tables = ARENA_NEW(&arena, struct table, FIXTURE_MAX_TABLES),
                .source = "tables.csv",
                .batch = batch,
                .kinds = SHARD_ALL_KINDS,
                .cluster =
                    {
                        .n_devices = n_devices,
                        .devices_per_host = per_host,
                        .memory_bytes = ARENA_NEW(&arena, uint64_t, n_devices),
                        .reserve_bytes = ARENA_NEW(&arena, uint64_t, n_devices),
                    },
            },
        .shards = ARENA_NEW(&arena, struct shard, FIXTURE_MAX_SHARDS),
        .total_ms = NAN,
        .bound_ms = NAN,
    };

    for (uint32_t r = 0; r < n_devices; r++)
        plan.problem.cluster.memory_bytes[r] = UINT64_C(80) << 30;
    return plan;
}

__attribute__((unused)) static struct table *
fixture_table(struct plan *plan, const char *name, uint64_t rows, uint32_t dim,
              double pooling)
{
    struct table *table = &plan->problem.tables[plan->problem.n_tables++];

    table_init(table);
    table->name = name;
    table->num_embeddings = rows;
    table->dim = dim;
    table->pooling_factor = pooling;
    return table;
}

/* Adds a piece of the table that was added last. */
__attribute__((unused)) static void
fixture_shard(struct plan *plan, uint64_t row_begin, uint64_t row_end,
              uint32_t col_begin, uint32_t col_end, uint32_t device)
{
    plan->shards[plan->n_shards++] = (struct shard){
        .table = (uint32_t)plan->problem.n_tables - 1,
        .row_begin = row_begin,
        .row_end = row_end,
        .col_begin = col_begin,
        .col_end = col_end,
        .device = device,
    };
}

/* Adds a whole table on one device. */
__attribute__((unused)) static void
fixture_whole(struct plan *plan, const char *name, uint64_t rows, uint32_t dim,
              double pooling, uint32_t device)
{
    fixture_table(plan, name, rows, dim, pooling);
    fixture_shard(plan, 0, rows, 0, dim, device);
}

/* Sorts the shards, derives their kinds and checks the plan. */
__attribute__((unused)) static void fixture_finish(struct plan *plan)
{
    struct err err = {0};

    plan_sort_shards(plan);
    plan_derive_kinds(plan);
    if (!ok(!plan_check(plan, &err), "the plan to emit is legal"))
        printf("# %s\n", err.msg);
}

/* Tests that the text contains `part`. The test is named by the first line of
 * `part`. */
__attribute__((unused)) static void is_in(const char *text, const char *part)
{
    const char *line = part + strspn(part, "\n");

    ok(text && strstr(text, part), "says: %.*s", (int)strcspn(line, "\n"),
       line);
}

#endif
