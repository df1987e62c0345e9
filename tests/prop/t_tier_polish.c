/* SPDX-License-Identifier: MIT */
/* The last changes of tiers in a plan: which tables are tried in which tiers.
 * One GPU has memory for both tables, so no change is kept unless the plan
 * begins in host memory. */
#include "core/memory.h"
#include "costmodel/models/oracles.h"
#include "search/tier_polish.h"
#include "tests/judge.h"
#include "tests/tap.h"

#define LARGE_ROWS 10000000.0

static struct arena arena;

/* Polishes a plan of a large and of another table, whose bytes are a share of
 * both. The other one begins in the tier. Returns the number of prices. */
static uint64_t polish(double share, enum tier tier, enum tier *after)
{
    struct table tables[2];
    uint64_t memory = 64ull << 30, reserve = 0;
    struct plan plan = {.bound_ms = NAN};
    struct oracle *oracle;
    struct err err = {0};
    uint64_t n;

    *after = tier;
    for (unsigned t = 0; t < 2; t++) {
        table_init(&tables[t]);
        tables[t].name = t ? "other" : "large";
        tables[t].dim = 64;
        tables[t].pooling_factor = 8;
        tables[t].skew_assumed = false;
        tables[t].zipf_alpha = 1.05;
        tables[t].num_embeddings =
            (uint64_t)(t ? LARGE_ROWS * share / (1 - share) : LARGE_ROWS);
    }
    plan.problem = (struct problem){.tables = tables,
                                    .n_tables = 2,
                                    .source = "fixture",
                                    .cluster = {.n_devices = 1,
                                                .devices_per_host = 1,
                                                .memory_bytes = &memory,
                                                .reserve_bytes = &reserve,
                                                .host_bytes = 1ull << 40},
                                    .kinds = SHARD_TABLE,
                                    .batch = 8192,
                                    .layout = LAYOUT_FBGEMM,
                                    .buffers = BUFFERS_TRACED,
                                    .dense_optimizer = DENSE_ADAM,
                                    .job.pipeline = PIPELINE_SDD};
    problem_find_hot_rows(&plan.problem, &arena);
    plan.n_shards = 2;
    plan.shards = ARENA_NEW(&arena, struct shard, 2);
    for (uint32_t t = 0; t < 2; t++)
        plan.shards[t] = shard_whole(&plan.problem, t, 0);
    plan.shards[1].tier = tier;
    if (oracle_roofline_open(&oracle, "h100", &plan.problem, &arena, &err)) {
        ok(0, "%s", err.msg);
        return 0;
    }
    n = tier_polish(&plan, oracle, &arena);
    ok(plan.shards[0].tier == TIER_HBM, "the large table stays");
    *after = plan.shards[1].tier;
    return n;
}

int main(void)
{
    enum tier after;
    uint64_t n = polish(0.0011, TIER_HBM, &after);

    ok(n == 5 && after == TIER_HBM,
       "a thousandth is tried in all tiers: %llu prices",
       (unsigned long long)n);
    n = polish(0.0009, TIER_HBM, &after);
    ok(n == 3 && after == TIER_HBM,
       "less than a thousandth is not moved to the host: %llu prices",
       (unsigned long long)n);
    n = polish(0.0009, TIER_HOST, &after);
    ok(n > 1 && after == TIER_HBM, "but it is moved from the host: %s",
       tier_names[after]);
    arena_release(&arena);
    return tap_done();
}
