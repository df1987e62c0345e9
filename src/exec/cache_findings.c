/* SPDX-License-Identifier: MIT */
#include "exec/cache_findings.h"

void cache_findings_keep(struct cache_findings *found,
                         const struct placement *placement, uint32_t rank)
{
    for (size_t k = 0; k < placement->n_caches; k++) {
        const struct pool_cache *cache = &placement->caches[k];

        if (cache->rank == rank)
            found[k] = (struct cache_findings){cache->counts,
                                               (double)cache->lru.n_used /
                                                   (double)cache->n_slots};
    }
}

static bool has_one_width(const struct pool_cache *cache)
{
    for (uint32_t i = 0; i < cache->n_pieces; i++)
        if (cache->pieces[i]->width != cache->slot_width)
            return false;
    return true;
}

static struct exec_cache describe(const struct pool_cache *cache,
                                  const struct cache_findings *found)
{
    const struct cache_counts *counts = &found->counts;
    const double n_batches = (double)max_u64(counts->n_batches, 1);

    return (struct exec_cache){
        .device = cache->rank,
        .pool = cache->name,
        .slot_width = cache->slot_width,
        .n_slots = cache->n_slots,
        .row_bytes = has_one_width(cache) ? cache->slot_bytes : 0,
        .full_frac = found->full_frac,
        .rows = (double)counts->n_rows / n_batches,
        .misses = (double)counts->n_misses / n_batches,
        .conflicts = (double)counts->n_conflicts / n_batches,
        .bytes = (double)counts->n_bytes / n_batches,
        .n_batches = counts->n_batches};
}

int cache_findings_collect(struct exec_result *result,
                           const struct placement *placement,
                           const struct cache_findings *found,
                           struct arena *arena, struct err *err)
{
    struct world *world = placement->comm->world;
    const size_t n = placement->n_caches;
    struct cache_findings *all = mem_alloc(n * world->size, sizeof(*all));
    const int rc =
        n ? world_all_gather(world, found, n * sizeof(*found), all, err) : 0;

    result->caches = ARENA_NEW(arena, struct exec_cache, n);
    result->n_caches = n;
    for (size_t k = 0; !rc && k < n; k++) {
        const struct pool_cache *cache = &placement->caches[k];
        const uint32_t process = world->size > 1 ? cache->rank : 0;

        result->caches[k] = describe(cache, &all[process * n + k]);
    }
    mem_free(all);
    return rc;
}
