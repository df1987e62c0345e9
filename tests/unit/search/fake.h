/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_SEARCH_FAKE_H
#define NEUROSHARD_TESTS_UNIT_SEARCH_FAKE_H

/* A cost model that can be checked by hand, and random problems for it.
 *
 *     compute = 1 + (lookups x width)^0.8 / 100, or 0.5 without pieces
 *     bwd     = largest output width / 100
 *     fwd     = waiting for the last device + largest output width / 100
 *
 * Include in one file only.
 */

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "core/cluster.h"
#include "core/memory.h"
#include "core/oracle.h"
#include "core/plan.h"

enum { FAKE_WORK, FAKE_OUTPUT, FAKE_PIECES, FAKE_WIDTH };

static void fake_embed(const struct oracle *oracle, const struct shard *shards,
                       size_t n, double *out)
{
    for (size_t i = 0; i < n; i++, out += FAKE_WIDTH) {
        const struct table *table = &oracle->problem->tables[shards[i].table];
        double width = shards[i].col_end - shards[i].col_begin;

        out[FAKE_WORK] = table->pooling_factor * width + table->pooling_factor;
        out[FAKE_OUTPUT] = table->num_outputs * width;
        out[FAKE_PIECES] = 1;
    }
}

static void fake_compute(const struct oracle *oracle, const double *sums,
                         size_t n, double *compute_ms)
{
    (void)oracle;
    for (size_t i = 0; i < n; i++, sums += FAKE_WIDTH)
        compute_ms[i] =
            sums[FAKE_PIECES] > 0 ? 1 + pow(sums[FAKE_WORK], 0.8) / 100 : 0.5;
}

static void fake_nan_compute(const struct oracle *oracle, const double *sums,
                             size_t n, double *compute_ms)
{
    fake_compute(oracle, sums, n, compute_ms);
    for (size_t i = 0; i < n; i++)
        if (sums[i * FAKE_WIDTH + FAKE_PIECES] > 2)
            compute_ms[i] = NAN;
}

/* Returns the widest output / 100, rounded to float as oracle.h requires. */
static double fake_bwd_ms(const double *outputs, size_t n, size_t stride)
{
    double widest = 0;

    for (size_t r = 0; r < n; r++)
        widest = fmax(widest, outputs[r * stride]);
    return (double)(float)(widest / 100);
}

static void fake_bwd(const struct oracle *oracle, size_t n,
                     const double *outputs, double *bwd_ms)
{
    const size_t n_devices = oracle->problem->cluster.n_devices;

    for (size_t i = 0; i < n * n_devices; i++)
        bwd_ms[i] =
            fake_bwd_ms(outputs + i / n_devices * n_devices, n_devices, 1);
}

static void fake_fwd(const struct oracle *oracle, size_t n,
                     const double *outputs, const double *compute_ms,
                     const double *bwd_ms, double *fwd_ms)
{
    const size_t n_devices = oracle->problem->cluster.n_devices;

    (void)outputs;
    for (size_t i = 0; i < n; i++, compute_ms += n_devices, bwd_ms += n_devices,
                fwd_ms += n_devices) {
        double last = 0;

        for (size_t r = 0; r < n_devices; r++)
            last = fmax(last, compute_ms[r] + bwd_ms[r]);
        for (size_t r = 0; r < n_devices; r++)
            fwd_ms[r] = last - compute_ms[r];
    }
}

static void fake_comm(const struct oracle *oracle, size_t n, const double *sums,
                      const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    const size_t n_devices = oracle->problem->cluster.n_devices;

    for (size_t i = 0; i < n * n_devices; i++)
        bwd_ms[i] = fake_bwd_ms(sums + i / n_devices * n_devices * FAKE_WIDTH +
                                    FAKE_OUTPUT,
                                n_devices, FAKE_WIDTH);
    fake_fwd(oracle, n, NULL, compute_ms, bwd_ms, fwd_ms);
}

__attribute__((unused)) static struct oracle
fake_oracle(const struct problem *problem)
{
    static const struct oracle_ops ops = {.embed = fake_embed,
                                          .compute = fake_compute,
                                          .comm = fake_comm,
                                          .bwd = fake_bwd,
                                          .fwd = fake_fwd};

    return (struct oracle){.ops = &ops,
                           .problem = problem,
                           .cost.name = "fake",
                           .cost.hash = "0123456789abcdef",
                           .cost.comm = "made up",
                           .width = FAKE_WIDTH,
                           .comm_lane = FAKE_OUTPUT,
                           .kinds = SHARD_TABLE | SHARD_COLUMN,
                           .floor_lane = -1};
}

/* Returns an oracle that gives NaN for each device with more than two
 * pieces. */
__attribute__((unused)) static struct oracle
fake_nan_oracle(const struct problem *problem)
{
    static const struct oracle_ops ops = {
        .embed = fake_embed, .compute = fake_nan_compute, .comm = fake_comm};
    struct oracle oracle = fake_oracle(problem);

    oracle.ops = &ops;
    return oracle;
}

static void fake_cluster(struct problem *problem, uint32_t n_devices,
                         uint64_t memory_bytes, struct arena *arena)
{
    problem->cluster = (struct cluster){
        .n_devices = n_devices,
        .devices_per_host = n_devices,
        .memory_bytes = ARENA_NEW(arena, uint64_t, n_devices),
        .reserve_bytes = ARENA_NEW(arena, uint64_t, n_devices)};
    for (uint32_t r = 0; r < n_devices; r++)
        problem->cluster.memory_bytes[r] = memory_bytes;
}

/* Fills a problem with n tables of rows[i] x dims[i] fp32 (memory counts
 * weights only) on equal devices. */
__attribute__((unused)) static void
fake_problem(struct problem *problem, const uint64_t *rows,
             const uint32_t *dims, size_t n, uint32_t n_devices,
             uint64_t memory_bytes, struct arena *arena)
{
    memset(problem, 0, sizeof(*problem));
    problem->tables = ARENA_NEW(arena, struct table, n);
    problem->n_tables = n;
    problem->batch = 64;
    problem->memory_model = MEMORY_WEIGHTS;
    problem->kinds = SHARD_ALL_KINDS;
    for (size_t i = 0; i < n; i++) {
        table_init(&problem->tables[i]);
        problem->tables[i].name = arena_printf(arena, "t%zu", i);
        problem->tables[i].num_embeddings = rows[i];
        problem->tables[i].dim = dims[i];
        problem->tables[i].pooling_factor = 10;
    }
    fake_cluster(problem, n_devices, memory_bytes, arena);
}

/* Fills a problem with n equal tables of 1000 x 16 that must stay whole. Each
 * device has enough memory for all tables. */
__attribute__((unused)) static void fake_equal_problem(struct problem *problem,
                                                       size_t n,
                                                       uint32_t n_devices,
                                                       struct arena *arena)
{
    uint64_t *rows = ARENA_NEW(arena, uint64_t, n);
    uint32_t *dims = ARENA_NEW(arena, uint32_t, n);

    for (size_t i = 0; i < n; i++) {
        rows[i] = 1000;
        dims[i] = 16;
    }
    fake_problem(problem, rows, dims, n, n_devices, UINT64_C(1) << 30, arena);
    problem->kinds = SHARD_TABLE;
}

/* Returns a plan with these shards. */
__attribute__((unused)) static struct plan
fake_plan(const struct problem *problem, const struct shard *shards, size_t n,
          struct arena *arena)
{
    struct plan plan = {.problem = *problem,
                        .shards = ARENA_NEW(arena, struct shard, n),
                        .n_shards = n};

    memcpy(plan.shards, shards, n * sizeof(*shards));
    plan_derive_kinds(&plan);
    return plan;
}

/* Returns a plan of the first n tables, each whole on its device. */
__attribute__((unused)) static struct plan
fake_whole_plan(const struct problem *problem, const uint32_t *device_of,
                uint32_t n, struct arena *arena)
{
    struct plan plan = {.problem = *problem,
                        .shards = ARENA_NEW(arena, struct shard, n),
                        .n_shards = n};

    plan.problem.n_tables = n;
    for (uint32_t t = 0; t < n; t++)
        plan.shards[t] = shard_whole(problem, t, device_of[t]);
    return plan;
}

/* Fills a problem with up to 30 different tables and up to 6 devices of uneven
 * memory. Together the devices have `slack` times the bytes that the tables
 * need. */
__attribute__((unused)) static void fake_random(struct problem *problem,
                                                struct rng *rng, double slack,
                                                struct arena *arena)
{
    static const uint32_t dims[] = {1, 4, 8, 12, 16, 20, 32, 64, 128, 192};
    size_t n = 1 + rng_below(rng, 30);
    uint32_t n_devices = 1 + (uint32_t)rng_below(rng, 6);
    double need = 0;

    memset(problem, 0, sizeof(*problem));
    problem->tables = ARENA_NEW(arena, struct table, n);
    problem->n_tables = n;
    problem->batch = 64;
    problem->memory_model = rng_below(rng, 2) ? MEMORY_WEIGHTS : MEMORY_FULL;
    problem->kinds = SHARD_ALL_KINDS;
    problem->job.dedup = (enum dedup)(n % 3);
    fake_cluster(problem, n_devices, 0, arena);
    for (uint32_t i = 0; i < n; i++) {
        struct table *table = &problem->tables[i];
        struct memory_items items;
        struct shard shard;

        table_init(table);
        table->name = arena_printf(arena, "t%u", i);
        table->num_embeddings = 1 + (uint64_t)exp(rng_uniform(rng) * log(1e6));
        table->dim = dims[rng_below(rng, sizeof dims / sizeof *dims)];
        table->pooling_factor = floor(rng_uniform(rng) * 50);
        table->num_outputs = rng_below(rng, 4) ? 1 : 2;
        table->row_order = (enum row_order)(i % N_ROW_ORDERS);
        table->row_seed = i;
        table->dedup = 1.0 / (1 + i % 4);
        shard = shard_whole(problem, i, 0);
        items = shard_memory(problem, &shard);
        need += (double)items.total;
    }
    for (uint32_t r = 0; r < n_devices; r++) {
        problem->cluster.memory_bytes[r] =
            (uint64_t)(need * slack * (0.5 + rng_uniform(rng)) / n_devices) +
            sample_memory(problem).total + 100;
        problem->cluster.reserve_bytes[r] = rng_below(rng, 100);
    }
    problem_find_hot_rows(problem, arena);
}

/* Constrains four in n tables, n >= 4: one has no cuts, one has no column cuts,
 * one is pinned and one is in a group. */
__attribute__((unused)) static void fake_constrain(struct problem *problem,
                                                   struct rng *rng, uint32_t n)
{
    for (size_t i = 0; i < problem->n_tables; i++) {
        struct table *table = &problem->tables[i];

        switch (rng_below(rng, n)) {
        case 0:
            table->kinds = SHARD_TABLE | SHARD_REPLICATE;
            break;
        case 1:
            table->kinds = SHARD_ROW | SHARD_TABLE;
            break;
        case 2:
            table->device = (int64_t)rng_below(rng, problem->cluster.n_devices);
            break;
        case 3:
            table->group = i % 2 ? "odd" : "even";
            break;
        default:
            break;
        }
    }
}

#endif
