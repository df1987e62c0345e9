/* SPDX-License-Identifier: MIT */
/*
 * Compares the full search with the plain rival (plain.h) on random, uneven
 * lists: 5 to 60 tables of 10^2 to 10^9 rows, 4 to 512 columns and poolings up
 * to 300, on 4 to 16 GPUs. Each list is priced by the roofline of an H100 and
 * by TorchRec's formulas. Both searches try the same number of changes, on one
 * thread.
 *
 *     bench_plain [LISTS [CHANGES [SEED [FIRST]]]]    30 2000000 1 0
 */
#include "tests/bench/plain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/plan_price.h"
#include "costmodel/models/oracle_open.h"
#include "search/search.h"
#include "search/snapshot.h"
#include "search/space_init.h"

#define DRAWN_SEED 1300 /* seed of the lists */
#define BATCH 65536
#define GIB (UINT64_C(1) << 30)

/* Draws a list. Memory is at least that of an H100, and at least one and a half
 * times the tables' need. */
static void draw_list(struct problem *problem, unsigned list,
                      struct arena *arena)
{
    double all_bytes = 0;
    struct rng rng;
    uint32_t n;

    rng_init(&rng, DRAWN_SEED, list);
    n = UINT32_C(4) << rng_draw(&rng, 3);
    *problem = (struct problem){
        .n_tables = 5 + rng_draw(&rng, 56),
        .batch = BATCH,
        .kinds = SHARD_ALL_KINDS,
        .cluster = {.n_devices = n,
                    .devices_per_host = n < 8 ? n : 8,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, n),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, n)}};
    problem->tables = ARENA_NEW(arena, struct table, problem->n_tables);
    for (size_t i = 0; i < problem->n_tables; i++) {
        struct table *table = &problem->tables[i];

        table_init(table);
        table->name = arena_printf(arena, "t%zu", i);
        table->num_embeddings = (uint64_t)pow(10, 2 + 7 * rng_uniform(&rng));
        table->dim = 4 * (1 + rng_draw(&rng, 128));
        table->pooling_factor = floor(301 * rng_uniform(&rng));
        all_bytes += 4.5 * (double)table->num_embeddings * table->dim;
    }
    for (uint32_t r = 0; r < n; r++)
        problem->cluster.memory_bytes[r] =
            (uint64_t)fmax(80.0 * GIB, 1.5 * all_bytes / n);
}

static double plain_total(const struct problem *problem,
                          const struct oracle *oracle, uint64_t n_changes,
                          uint64_t seed, struct arena *arena, struct err *err)
{
    struct snapshot best = {0};
    struct search_space space;
    double total_ms;

    if (space_init(&space, problem, oracle, NULL, NULL, arena, err))
        return NAN;
    total_ms = plain_solve(&best, &space, n_changes, seed, arena) > 0
                   ? INFINITY
                   : best.total_ms;
    snapshot_release(&best);
    return total_ms;
}

static double full_total(struct plan *plan, const struct oracle *oracle,
                         uint64_t effort, uint64_t seed, struct arena *arena,
                         struct err *err)
{
    struct search_options options;
    double bound_ms;

    search_options_init(&options);
    options.effort = effort;
    options.seed = seed;
    if (search_full(plan, oracle, &options, arena, err))
        return NAN;
    plan_derive_kinds(plan);
    bound_ms = plan->bound_ms;
    if (plan_price(plan, oracle, arena, err))
        return NAN;
    plan->bound_ms = bound_ms;
    return plan->total_ms;
}

static bool bench_list(unsigned list, const char *cost, uint64_t n_changes,
                       uint64_t seed)
{
    struct oracle *oracle = NULL;
    struct plan plan = {0};
    double plain, full;
    struct err err = {0};
    struct arena arena = {0};
    bool is_dearer = false;

    draw_list(&plan.problem, list, &arena);
    if (oracle_open(&oracle, cost, &plan.problem, &arena, &err))
        goto out;
    plain = plain_total(&plan.problem, oracle, n_changes, seed, &arena, &err);
    full = full_total(&plan, oracle, n_changes, seed, &arena, &err);
    is_dearer = full > plain * (1 + 1e-9);
    printf("%4u %6zu %4u %-13s %9.4f %9.4f %7.2f%s %9.4f\n", list,
           plan.problem.n_tables, plan.problem.cluster.n_devices, cost, plain,
           full, 100 * (full / plain - 1), is_dearer ? "*" : " ",
           plan.bound_ms);
    fflush(stdout);
out:
    if (err.code)
        printf("%4u %s\n", list, err.msg);
    arena_release(&arena);
    return is_dearer;
}

int main(int argc, char **argv)
{
    static const char *const costs[] = {"roofline:h100", "torchrec"};
    unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 30;
    uint64_t n_changes = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    unsigned first = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
    unsigned n_dearer = 0;

    printf("%4s %6s %4s %-13s %9s %9s %7s  %9s\n", "list", "tables", "gpus",
           "cost", "plain ms", "search ms", "%", "bound ms");
    for (unsigned list = first; list < first + n; list++)
        for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
            n_dearer += bench_list(list, costs[i], n_changes, seed);
    printf("%u of %zu dearer (*)\n", n_dearer,
           n * sizeof costs / sizeof *costs);
    return 0;
}
