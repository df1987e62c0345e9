/* SPDX-License-Identifier: MIT */
#include "search/tier_polish.h"

#include "base/ranked.h"
#include "core/load_factors.h"
#include "core/plan_check.h"
#include "core/plan_price.h"

#include <math.h>
#include <string.h>

/* Largest number of tables that are tried, and of rounds over them. In a round,
 * at most MOST_SHARDS shards are priced, counted once for each price. */
#define MOST_TABLES 64
#define MOST_ROUNDS 3
#define MOST_SHARDS 100000
/* Share of the bytes of all tables below which a table is small. A small table
 * frees no memory that matters, so it is only tried in the memory of GPUs. */
#define SMALL_FRAC 1e-3
/* Least gain of a change, as a share of the total. */
#define LEAST_GAIN 1e-6

/* Returns the total of the plan with the best load factors, or INFINITY if it
 * is not legal. Arrays are in the arena. */
static double price(struct plan *plan, const struct oracle *oracle,
                    struct arena *arena)
{
    struct err ignored = {0};

    plan->bound_ms = NAN;
    plan_choose_factors(plan, oracle->curves, arena);
    return plan_price(plan, oracle, arena, &ignored) ||
                   plan_check(plan, &ignored)
               ? INFINITY
               : plan->total_ms;
}

/* Returns the total of a copy of the plan in which a table is in the tier. */
static double price_in(const struct plan *plan, const struct shard *shards,
                       uint32_t table, enum tier tier,
                       const struct oracle *oracle)
{
    struct shard *copy = mem_alloc(plan->n_shards, sizeof(*copy));
    struct plan other = *plan;
    struct arena scratch = {0};
    double total_ms;

    memcpy(copy, shards, plan->n_shards * sizeof(*copy));
    for (size_t i = 0; i < plan->n_shards; i++)
        if (copy[i].table == table)
            copy[i].tier = tier;
    other.shards = copy;
    total_ms = price(&other, oracle, &scratch);
    arena_release(&scratch);
    mem_free(copy);
    return total_ms;
}

/* Orders the tables by their share of the bytes of all tables, the largest
 * first; the keys are the negative shares. Returns how many are tried. */
static size_t order_tables(const struct problem *problem, size_t n_shards,
                           struct ranked *order)
{
    double all = 0;

    for (uint32_t t = 0; t < problem->n_tables; t++) {
        order[t] =
            (struct ranked){-(double)problem->tables[t].num_embeddings *
                                problem->tables[t].dim *
                                precision_bytes(problem->tables[t].precision),
                            t};
        all -= order[t].key;
    }
    for (uint32_t t = 0; t < problem->n_tables; t++)
        order[t].key /= all;
    ranked_sort(order, problem->n_tables);
    return min_u64(min_u64(problem->n_tables, MOST_TABLES),
                   MOST_SHARDS / (N_TIERS * n_shards) + 1);
}

/* Tries all other tiers of a table, or only the memory of GPUs, and keeps the
 * best. Returns whether the plan has changed. */
static bool try_table(const struct plan *plan, uint32_t table, bool is_small,
                      const struct oracle *oracle, double *best_ms,
                      uint64_t *n_priced)
{
    struct shard *first = plan->shards;
    enum tier now, best;

    while (first->table != table)
        first++;
    now = best = first->tier;
    if (plan->problem.tables[table].group) /* its tables share a tier */
        return false;
    for (unsigned tier = 0; tier < (is_small ? TIER_HBM + 1 : N_TIERS);
         tier++) {
        double total_ms;

        if (tier == now || shard_is_replica(first->kind))
            continue;
        total_ms = price_in(plan, plan->shards, table, (enum tier)tier, oracle);
        ++*n_priced;
        if (total_ms < *best_ms * (1 - LEAST_GAIN)) {
            *best_ms = total_ms;
            best = (enum tier)tier;
        }
    }
    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].table == table)
            plan->shards[i].tier = best;
    return best != now;
}

uint64_t tier_polish(struct plan *plan, const struct oracle *oracle,
                     struct arena *arena)
{
    struct ranked *order = mem_alloc(plan->problem.n_tables, sizeof(*order));
    const size_t n = order_tables(&plan->problem, plan->n_shards, order);
    struct plan scratch = *plan;
    struct arena memory = {0};
    uint64_t n_priced = 1;
    double best_ms = price(&scratch, oracle, &memory);
    bool goes_on = true;

    arena_release(&memory);
    for (unsigned round = 0; round < MOST_ROUNDS && goes_on; round++) {
        goes_on = false;
        for (size_t i = 0; i < n; i++)
            goes_on |= try_table(plan, order[i].idx, -order[i].key < SMALL_FRAC,
                                 oracle, &best_ms, &n_priced);
    }
    plan_choose_factors(plan, oracle->curves, arena);
    mem_free(order);
    return n_priced;
}
