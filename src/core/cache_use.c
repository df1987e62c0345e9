/* SPDX-License-Identifier: MIT */
#include "core/cache_use.h"

#include "base/hash.h"
#include "base/ranked.h"
#include "core/target_tiers.h"

#include <math.h>
#include <string.h>

double cache_lookups(const struct problem *problem, uint32_t table)
{
    struct problem drawn = *problem;
    const struct shard whole = shard_whole(problem, table, 0);

    /* a cache counts different rows, whether ids are de-duplicated or not */
    if (drawn.job.dedup == DEDUP_IDS)
        drawn.job.dedup = DEDUP_NONE;
    return shard_lookups(&drawn, &whole);
}

/* All inputs of a curve. */
struct curve_key {
    uint64_t n_rows, n_reach;
    double n_lookups, alpha, assumed, bins[REUSE_BINS];
    double reach[REACH_WINDOWS], misses[REACH_WINDOWS];
};

static struct curve_key key_of(const struct problem *problem, uint32_t t)
{
    const struct table *table = &problem->tables[t];
    struct curve_key key = {.n_rows = table->num_embeddings,
                            .n_reach = table->n_reach,
                            .n_lookups = cache_lookups(problem, t),
                            .alpha = table->has_bins ? -1 : table->zipf_alpha,
                            .assumed = table->skew_assumed};

    if (table->has_bins)
        memcpy(key.bins, table->bins, sizeof(key.bins));
    memcpy(key.reach, table->reach, sizeof(key.reach));
    memcpy(key.misses, table->misses, sizeof(key.misses));
    return key;
}

const struct cache_curve *cache_curves(const struct problem *problem,
                                       struct arena *arena)
{
    const size_t n = problem->n_tables;
    struct cache_curve *curves = ARENA_NEW(arena, struct cache_curve, n);
    struct ranked *order = mem_alloc(n, sizeof(*order));
    struct curve_key before = {0};
    uint32_t last = 0;

    for (uint32_t t = 0; t < n; t++) {
        const struct curve_key key = key_of(problem, t);

        order[t] = (struct ranked){
            (double)(hash_bytes(&key, sizeof(key), 0) >> 11), t};
    }
    ranked_sort(order, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t t = order[i].idx;
        const struct curve_key key = key_of(problem, t);

        if (!(problem_tiers(problem, t) & 1u << TIER_CACHED))
            continue;
        if (!memcmp(&key, &before, sizeof(key)))
            curves[t] = curves[last];
        else
            cache_curve_init(&curves[t], &problem->tables[t], key.n_lookups);
        before = key;
        last = t;
    }
    mem_free(order);
    return curves;
}

void pools_use(const struct plan *plan, const struct cache_pools *pools,
               const struct cache_curve *curves, struct pool_use *uses)
{
    double(*lanes)[CACHE_LANES] = mem_alloc(pools->n, sizeof(*lanes));
    struct cache_point *points = mem_alloc(pools->n, sizeof(*points));
    double piece[CACHE_LANES];

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const size_t p = pools->of_shard[i];

        if (p == SIZE_MAX)
            continue;
        cache_embed(
            piece, &curves[shard->table],
            (double)(shard->row_end - shard->row_begin) /
                (double)plan->problem.tables[shard->table].num_embeddings,
            (double)pool_row_bytes(&pools->pools[p].key,
                                   shard->col_end - shard->col_begin),
            0);
        for (unsigned k = 0; k < CACHE_LANES; k++)
            lanes[p][k] += piece[k];
    }
    for (size_t p = 0; p < pools->n; p++) {
        const struct cache_use use =
            cache_evaluate(lanes[p], (double)pools->pools[p].n_slots);

        points[p] = use.point;
        uses[p] = (struct pool_use){.rows_per_batch =
                                        lanes[p][CACHE_ROWS + CACHE_LEVELS],
                                    .fills = use.misses,
                                    .fill_bytes = use.miss_bytes};
    }
    for (size_t i = 0; i < plan->n_shards; i++) {
        const size_t p = pools->of_shard[i];
        enum cache_basis basis;

        if (p == SIZE_MAX)
            continue;
        basis = cache_basis_at(&curves[plan->shards[i].table], points[p]);
        if (basis > uses[p].basis)
            uses[p].basis = basis;
    }
    mem_free(points);
    mem_free(lanes);
}

void plan_use_caches(struct plan *plan, const struct cache_curve *curves)
{
    struct cache_pools pools;
    struct pool_use *uses;
    size_t next = 0;

    cache_pools_init(&pools, plan);
    uses = mem_alloc(pools.n, sizeof(*uses));
    pools_use(plan, &pools, curves, uses);
    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++)
        for (size_t i = 0; i < plan->devices[r].n_caches; i++) {
            struct device_cache *cache = &plan->devices[r].caches[i];
            const struct pool_use *use = &uses[next++];

            cache->rows_per_batch = use->rows_per_batch;
            cache->fills = use->fills;
            cache->miss =
                use->rows_per_batch > 0 ? use->fills / use->rows_per_batch : 0;
        }
    mem_free(uses);
    cache_pools_release(&pools);
}
