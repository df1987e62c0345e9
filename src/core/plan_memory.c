/* SPDX-License-Identifier: MIT */
#include "core/plan_memory.h"

#include "core/cache_pools.h"
#include "core/memory.h"

void plan_count_memory(struct plan *plan)
{
    const struct cluster *cluster = &plan->problem.cluster;
    struct memory_items samples = sample_memory(&plan->problem);
    struct cache_pools pools;

    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        plan->devices[r].memory = reserved_memory(cluster, r);
        memory_add(&plan->devices[r].memory, samples);
    }
    for (size_t i = 0; i < plan->n_shards; i++)
        memory_add(&plan->devices[plan->shards[i].device].memory,
                   shard_memory(&plan->problem, &plan->shards[i]));
    if (!plan_has_caches(plan))
        return;
    cache_pools_init(&pools, plan);
    for (size_t i = 0; i < pools.n; i++)
        pool_add_memory(&plan->problem, &pools.pools[i],
                        &plan->devices[pools.pools[i].device].memory);
    cache_pools_release(&pools);
}

void plan_fill_caches(struct plan *plan, struct arena *arena)
{
    struct cache_pools pools;

    cache_pools_init(&pools, plan);
    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++) {
        plan->devices[r].caches = NULL;
        plan->devices[r].n_caches = 0;
    }
    for (size_t begin = 0, end; begin < pools.n; begin = end) {
        const uint32_t r = pools.pools[begin].device;
        struct device_cache *caches;

        for (end = begin; end < pools.n && pools.pools[end].device == r;)
            end++;
        caches = ARENA_NEW(arena, struct device_cache, end - begin);
        for (size_t i = begin; i < end; i++) {
            const struct cache_pool *pool = &pools.pools[i];
            struct buf name = {0};

            pool_print(&pool->key, &name);
            caches[i - begin] =
                (struct device_cache){.pool = arena_strdup(arena, name.data),
                                      .n_slots = pool->n_slots,
                                      .slot_width = pool->slot_width,
                                      .load_factor = pool->load_factor,
                                      .rows_per_batch = NAN,
                                      .fills = NAN,
                                      .miss = NAN};
            buf_release(&name);
        }
        plan->devices[r].caches = caches;
        plan->devices[r].n_caches = end - begin;
    }
    cache_pools_release(&pools);
}
