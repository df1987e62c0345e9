/* SPDX-License-Identifier: MIT */
#include "exec/row_cache.h"

#include "base/mem.h"
#include "base/rng.h"

#include <string.h>

void row_cache_open(struct row_cache *cache, uint64_t n_slots)
{
    *cache = (struct row_cache){.n_sets = n_slots / ROW_CACHE_WAYS};
    cache->rows = mem_alloc((size_t)n_slots, sizeof(*cache->rows));
    cache->stamps = mem_alloc((size_t)n_slots, sizeof(*cache->stamps));
    row_cache_clear(cache);
}

void row_cache_close(struct row_cache *cache)
{
    mem_free(cache->rows);
    mem_free(cache->stamps);
    *cache = (struct row_cache){0};
}

void row_cache_clear(struct row_cache *cache)
{
    const size_t n_slots = (size_t)cache->n_sets * ROW_CACHE_WAYS;

    memset(cache->rows, 0xff, n_slots * sizeof(*cache->rows));
    memset(cache->stamps, 0, n_slots * sizeof(*cache->stamps));
    cache->batch = 0;
    cache->n_used = 0;
}

/* Returns the first slot of the row's set. */
static uint64_t set_of(const struct row_cache *cache, uint64_t row)
{
    return mix64(row) % cache->n_sets * ROW_CACHE_WAYS;
}

/* Looks for a row, and stamps its slot if it is found. Returns whether it is
 * found. */
static bool find(struct row_cache *cache, uint64_t row)
{
    const uint64_t set = set_of(cache, row);

    for (uint64_t slot = set; slot < set + ROW_CACHE_WAYS; slot++)
        if (cache->rows[slot] == row) {
            cache->stamps[slot] = cache->batch;
            return true;
        }
    return false;
}

/* Inserts a missing row. Returns false if its set has no slot for it. */
static bool insert(struct row_cache *cache, uint64_t row, struct row_move *move)
{
    const uint64_t set = set_of(cache, row);
    uint64_t oldest = set;

    for (uint64_t slot = set + 1; slot < set + ROW_CACHE_WAYS; slot++)
        if (cache->stamps[slot] < cache->stamps[oldest])
            oldest = slot;
    if (cache->stamps[oldest] == cache->batch)
        return false;
    *move = (struct row_move){row, cache->rows[oldest], oldest};
    cache->n_used += move->evicted == NO_ROW;
    cache->rows[oldest] = row;
    cache->stamps[oldest] = cache->batch;
    return true;
}

size_t row_cache_use(struct row_cache *cache, const uint64_t *rows, size_t n,
                     struct row_move *moves, size_t *n_moves)
{
    uint64_t *missing = mem_alloc(n, sizeof(*missing));
    size_t n_missing = 0;

    cache->batch++;
    *n_moves = 0;
    for (size_t i = 0; i < n; i++)
        if (!find(cache, rows[i]))
            missing[n_missing++] = rows[i];
    for (size_t i = 0; i < n_missing; i++)
        *n_moves += insert(cache, missing[i], &moves[*n_moves]);
    mem_free(missing);
    return n_missing;
}
