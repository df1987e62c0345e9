/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_CORE_WHAT_IF_FIXTURE_H
#define NEUROSHARD_TESTS_UNIT_CORE_WHAT_IF_FIXTURE_H

/* Random plans with prices. Include in one file only. */

#include "base/rng.h"
#include "core/plan.h"
#include "core/plan_price.h"
#include "tests/tap.h"

#define N_TABLES 5u
#define N_DEVICES 3u

/* A cost model that is not additive: a sum to the power of 0.8. Each GPU waits
 * for the slowest one. */
static void fake_embed(const struct oracle *oracle, const struct shard *shards,
                       size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (shards[i].col_end - shards[i].col_begin) *
                 (1 + shard_lookups(oracle->problem, &shards[i]));
}

static void fake_compute(const struct oracle *oracle, const double *sums,
                         size_t n, double *compute_ms)
{
    (void)oracle;
    for (size_t i = 0; i < n; i++)
        compute_ms[i] = pow(fabs(sums[i]), 0.8);
}

static void fake_comm(const struct oracle *oracle, size_t n, const double *sums,
                      const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    (void)oracle;
    for (size_t i = 0; i < n; i++) {
        double last = 0;

        for (size_t r = 0; r < N_DEVICES; r++)
            last = fmax(last, compute_ms[i * N_DEVICES + r]);
        for (size_t r = i * N_DEVICES; r < (i + 1) * N_DEVICES; r++) {
            bwd_ms[r] = 1e-3 * sums[r];
            fwd_ms[r] = last - compute_ms[r];
        }
    }
}

static const struct oracle_ops fake_ops = {
    .embed = fake_embed, .compute = fake_compute, .comm = fake_comm};

struct fixture {
    struct plan plan;
    struct oracle oracle;
};

/* Makes a plan whose tables are whole or halved at random, on GPUs of different
 * memory sizes. */
static void fixture_init(struct fixture *fixture, struct rng *rng,
                         struct arena *arena)
{
    struct plan *plan = &fixture->plan;
    struct err err = {0};

    *plan = (struct plan){
        .problem = {
            .tables = ARENA_NEW(arena, struct table, N_TABLES),
            .n_tables = N_TABLES,
            .cluster = {.n_devices = N_DEVICES,
                        .devices_per_host = N_DEVICES,
                        .memory_bytes = ARENA_NEW(arena, uint64_t, N_DEVICES),
                        .reserve_bytes = ARENA_NEW(arena, uint64_t, N_DEVICES)},
            .batch = 4,
            .kinds = SHARD_ALL_KINDS,
        }};
    plan->shards = ARENA_NEW(arena, struct shard, 2 * N_TABLES);
    for (uint32_t r = 0; r < N_DEVICES; r++) {
        uint64_t reserve = rng_below(rng, 30000);

        plan->problem.cluster.reserve_bytes[r] = reserve;
        plan->problem.cluster.memory_bytes[r] =
            reserve + 20000 + rng_below(rng, 60000);
    }
    for (uint32_t t = 0; t < N_TABLES; t++) {
        struct table *table = &plan->problem.tables[t];
        struct shard *shard = &plan->shards[plan->n_shards];

        table_init(table);
        table->name = arena_printf(arena, "t%u", t);
        table->num_embeddings = 1 + rng_below(rng, 500);
        table->dim = 8 * (1 + (uint32_t)rng_below(rng, 4));
        table->pooling_factor = 1 + rng_uniform(rng);
        *shard =
            shard_whole(&plan->problem, t, (uint32_t)rng_below(rng, N_DEVICES));
        plan->n_shards++;
        if (rng_below(rng, 2))
            continue;
        shard[1] = shard[0];
        shard[0].col_end = shard[1].col_begin = table->dim / 2;
        shard[1].device = (uint32_t)rng_below(rng, N_DEVICES);
        plan->n_shards++;
    }
    fixture->oracle = (struct oracle){.ops = &fake_ops,
                                      .problem = &plan->problem,
                                      .cost.name = "fake",
                                      .cost.hash = "00",
                                      .cost.comm = "made up",
                                      .width = 1,
                                      .kinds = SHARD_ALL_KINDS,
                                      .floor_lane = -1};
    plan_derive_kinds(plan);
    if (plan_price(plan, &fixture->oracle, arena, &err))
        ok(0, "priced: %s", err.msg);
}

#endif
