/* SPDX-License-Identifier: MIT */
#include "core/cache_pools.h"

#include "base/ranked.h"

#include <stdlib.h>
#include <string.h>

struct pool_key shard_pool(const struct problem *problem,
                           const struct shard *shard)
{
    const struct table *table = &problem->tables[shard->table];
    struct pool_key key = {.module = table->name,
                           .module_len = table_module_len(table),
                           .output = table->output,
                           .type = shard_torchrec_type(problem, shard),
                           .precision = table->precision,
                           .optimizer = table->optimizer};

    if (key.type == TORCHREC_TABLE_WISE && key.output == OUTPUT_POOLED)
        key.type = TORCHREC_COLUMN_WISE;
    if (problem->job.pipeline == PIPELINE_PREFETCH)
        key.width = shard->col_end - shard->col_begin;
    return key;
}

int pool_compare(const struct pool_key *a, const struct pool_key *b)
{
    const uint64_t x[] = {a->output,    a->type,  a->precision,
                          a->optimizer, a->width, a->module_len};
    const uint64_t y[] = {b->output,    b->type,  b->precision,
                          b->optimizer, b->width, b->module_len};
    const int c = ranked_compare(x, y, 6);

    return c || !a->module_len ? c
                               : memcmp(a->module, b->module, a->module_len);
}

void pool_print(const struct pool_key *key, struct buf *out)
{
    if (key->module_len)
        buf_printf(out, "%.*s/", (int)key->module_len, key->module);
    buf_printf(out, "%s/%s/%s/%s", table_output_names[key->output],
               torchrec_type_names[key->type], precision_names[key->precision],
               optimizer_names[key->optimizer]);
    if (key->width)
        buf_printf(out, "/%u", key->width);
}

uint64_t pool_slots(uint64_t n_rows, double load_factor)
{
    const uint64_t wanted = (uint64_t)((double)n_rows * load_factor);
    const uint64_t sets = (wanted + CACHE_SET_SLOTS - 1) / CACHE_SET_SLOTS;

    return CACHE_SET_SLOTS * (sets ? sets : 1);
}

uint64_t pool_row_bytes(const struct pool_key *key, uint32_t width)
{
    return (uint64_t)width * precision_bytes(key->precision);
}

uint64_t pool_state_bytes(const struct problem *problem)
{
    return CACHE_STATE_BYTES +
           (problem->job.pipeline == PIPELINE_PREFETCH ? CACHE_LOCK_BYTES : 0);
}

/* A cached shard and its pool. */
struct pooled_shard {
    struct pool_key key;
    const struct shard *shard;
};

/* Orders the shards of a pool as plans sort them, so that the sum of their load
 * factors does not depend on the order of plan->shards. */
static int compare_pooled(const void *left, const void *right)
{
    const struct pooled_shard *a = left, *b = right;
    const int c = (a->shard->device > b->shard->device) -
                  (a->shard->device < b->shard->device);
    const int d = c ? c : pool_compare(&a->key, &b->key);

    return d ? d : shard_compare(a->shard, b->shard);
}

/* Fills a pool from its n pieces. */
static struct cache_pool pool_of(const struct plan *plan,
                                 const struct pooled_shard *pieces, size_t n)
{
    struct cache_pool pool = {.key = pieces->key,
                              .device = pieces->shard->device,
                              .n_pieces = (uint32_t)n};
    double sum = 0, weight = 0;

    for (size_t i = 0; i < n; i++) {
        const struct shard *shard = pieces[i].shard;
        const uint32_t width = shard->col_end - shard->col_begin;
        const double n_rows =
            (double)plan->problem.tables[shard->table].num_embeddings;

        pool.n_rows += shard->row_end - shard->row_begin;
        if (width > pool.slot_width)
            pool.slot_width = width;
        if (plan->load_factors)
            sum += plan->load_factors[shard->table] * n_rows;
        weight += n_rows;
    }
    pool.load_factor = sum / weight;
    pool.n_slots = pool_slots(pool.n_rows, pool.load_factor);
    return pool;
}

bool plan_has_caches(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].tier == TIER_CACHED)
            return true;
    return false;
}

void cache_pools_init(struct cache_pools *pools, const struct plan *plan)
{
    struct pooled_shard *cached = mem_alloc(plan->n_shards, sizeof(*cached));
    size_t n = 0;

    *pools = (struct cache_pools){
        .of_shard = mem_alloc(plan->n_shards, sizeof(*pools->of_shard))};
    for (size_t i = 0; i < plan->n_shards; i++) {
        pools->of_shard[i] = SIZE_MAX;
        if (plan->shards[i].tier == TIER_CACHED)
            cached[n++] = (struct pooled_shard){
                shard_pool(&plan->problem, &plan->shards[i]), &plan->shards[i]};
    }
    qsort(cached, n, sizeof(*cached), compare_pooled);
    pools->pools = mem_alloc(n, sizeof(*pools->pools));
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin;
             end < n &&
             cached[end].shard->device == cached[begin].shard->device &&
             !pool_compare(&cached[end].key, &cached[begin].key);
             end++)
            pools->of_shard[cached[end].shard - plan->shards] = pools->n;
        pools->pools[pools->n++] = pool_of(plan, cached + begin, end - begin);
    }
    mem_free(cached);
}

void cache_pools_release(struct cache_pools *pools)
{
    mem_free(pools->pools);
    mem_free(pools->of_shard);
    *pools = (struct cache_pools){0};
}

static uint64_t slots_bytes(uint64_t n_slots, uint64_t slot_bytes)
{
    uint64_t bytes;

    return __builtin_mul_overflow(n_slots, slot_bytes, &bytes) ? UINT64_MAX
                                                               : bytes;
}

void pool_add_memory(const struct problem *problem,
                     const struct cache_pool *pool, struct memory_items *items)
{
    struct memory_items more = {
        .cache = slots_bytes(pool->n_slots,
                             pool_row_bytes(&pool->key, pool->slot_width)),
        .cache_state = slots_bytes(pool->n_slots, pool_state_bytes(problem))};

    more.total = saturating_add(more.cache, more.cache_state);
    memory_add(items, more);
}
