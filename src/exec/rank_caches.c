/* SPDX-License-Identifier: MIT */
#include "exec/rank_caches.h"

#include "base/radix_sort.h"
#include "device/lookup.h"

#include <string.h>

static size_t row_bytes(const struct piece *piece)
{
    return piece->width * precision_bytes(piece->table->precision);
}

/* Returns the bytes of the unit of places (LOOKUP_PLACE_COLUMNS). */
static size_t place_bytes(const struct piece *piece)
{
    return LOOKUP_PLACE_COLUMNS * precision_bytes(piece->table->precision);
}

/* Sets the place of a row to an address. */
static void set_place(const struct piece *piece, uint64_t row,
                      const char *address)
{
    piece->d_places[row] =
        (uint32_t)((size_t)(address - (const char *)piece->d_weight) /
                   place_bytes(piece));
}

static char *host_row(const struct piece *piece, uint64_t row)
{
    return (char *)piece->d_weight + row * row_bytes(piece);
}

void rank_caches_open(struct placement *placement, struct rank_range ranks)
{
    for (size_t k = 0; k < placement->n_caches; k++) {
        struct pool_cache *cache = &placement->caches[k];

        if (cache->rank < ranks.begin || cache->rank >= ranks.end)
            continue;
        row_cache_open(&cache->lru, cache->n_slots);
        for (uint32_t i = 0; i < cache->n_pieces; i++)
            for (uint64_t row = 0; row < cache->pieces[i]->n_rows; row++)
                set_place(cache->pieces[i], row,
                          host_row(cache->pieces[i], row));
    }
}

void rank_caches_close(struct placement *placement)
{
    for (size_t k = 0; k < placement->n_caches; k++) {
        struct pool_cache *cache = &placement->caches[k];

        row_cache_close(&cache->lru);
        mem_free(cache->rows);
        cache->rows = NULL;
        cache->n_collected = cache->room = 0;
    }
}

void pool_cache_add(const struct piece *piece, const uint32_t *ids, size_t n)
{
    struct pool_cache *cache = piece->cache;
    const size_t n_all = cache->n_collected + n;

    if (n_all > cache->room) {
        cache->room = 2 * n_all;
        cache->rows = mem_grow(cache->rows, cache->room, sizeof(*cache->rows));
    }
    for (size_t i = 0; i < n; i++)
        cache->rows[cache->n_collected++] = piece->cache_row + ids[i];
}

/* Sorts the rows that a batch looks up in a cache, and drops repeats. Uses
 * scratch[cache->n_collected] as working memory. Returns the rows, which are in
 * cache->rows or in scratch, and sets *n to their number. */
static const uint64_t *distinct(const struct pool_cache *cache,
                                uint64_t *scratch, size_t *n)
{
    const struct radix_sort sort = {
        .keys = {cache->rows, scratch},
        .n = cache->n_collected,
        .key_bytes = sizeof(uint64_t),
        .mask = radix_mask(cache->n_rows - 1),
    };
    uint64_t *rows = sort.keys[radix_sort(&sort)];

    *n = 0;
    for (size_t i = 0; i < cache->n_collected; i++)
        if (!i || rows[i] != rows[*n - 1])
            rows[(*n)++] = rows[i];
    return rows;
}

/* Returns the piece that has a row of the cache. */
static const struct piece *piece_of_row(const struct pool_cache *cache,
                                        uint64_t row)
{
    uint32_t begin = 0, end = cache->n_pieces;

    while (end - begin > 1) {
        const uint32_t middle = begin + (end - begin) / 2;

        if (cache->pieces[middle]->cache_row <= row)
            begin = middle;
        else
            end = middle;
    }
    return cache->pieces[begin];
}

static char *slot_at(const struct pool_cache *cache, uint64_t slot)
{
    return cache->d_slots + slot * cache->slot_bytes;
}

/* Copies the row in a slot to host memory. Returns its bytes. */
static size_t write_back(const struct pool_cache *cache, uint64_t slot,
                         uint64_t row)
{
    const struct piece *piece = piece_of_row(cache, row);
    const size_t n_bytes = row_bytes(piece);

    memcpy(host_row(piece, row - piece->cache_row), slot_at(cache, slot),
           n_bytes);
    return n_bytes;
}

/* Moves a row into its slot. The row that was there is written back. Returns
 * the bytes moved. */
static size_t make_move(const struct pool_cache *cache,
                        const struct row_move *move)
{
    const struct piece *piece = piece_of_row(cache, move->row);
    const uint64_t row = move->row - piece->cache_row;
    size_t n_bytes = row_bytes(piece);

    if (move->evicted != NO_ROW) {
        const struct piece *old = piece_of_row(cache, move->evicted);
        const uint64_t old_row = move->evicted - old->cache_row;

        n_bytes += write_back(cache, move->slot, move->evicted);
        set_place(old, old_row, host_row(old, old_row));
    }
    memcpy(slot_at(cache, move->slot), host_row(piece, row), row_bytes(piece));
    set_place(piece, row, slot_at(cache, move->slot));
    return n_bytes;
}

/* Returns the bytes of all rows without a slot, which are in host memory. */
static size_t outside_bytes(const struct pool_cache *cache,
                            const uint64_t *rows, size_t n)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < n; i++) {
        const struct piece *piece = piece_of_row(cache, rows[i]);
        const uint64_t row = rows[i] - piece->cache_row;

        if (piece->d_places[row] * place_bytes(piece) == row * row_bytes(piece))
            n_bytes += row_bytes(piece);
    }
    return n_bytes;
}

void pool_cache_fill(struct pool_cache *cache)
{
    struct cache_counts *counts = &cache->counts;
    uint64_t *scratch = mem_alloc(cache->n_collected, sizeof(*scratch));
    struct row_move *moves;
    const uint64_t *rows;
    size_t n, n_moves, n_misses;

    rows = distinct(cache, scratch, &n);
    moves = mem_alloc(n, sizeof(*moves));
    n_misses = row_cache_use(&cache->lru, rows, n, moves, &n_moves);
    for (size_t i = 0; i < n_moves; i++)
        counts->n_bytes += make_move(cache, &moves[i]);
    counts->n_batches++;
    counts->n_rows += n;
    counts->n_misses += n_misses;
    counts->n_conflicts += n_misses - n_moves;
    if (n_misses > n_moves)
        counts->n_bytes += 2 * outside_bytes(cache, rows, n);
    mem_free(moves);
    mem_free(scratch);
    cache->n_collected = 0;
}

void rank_caches_write_back(const struct placement *placement)
{
    for (size_t k = 0; k < placement->n_caches; k++) {
        const struct pool_cache *cache = &placement->caches[k];

        for (uint64_t slot = 0; slot < cache->lru.n_sets * ROW_CACHE_WAYS;
             slot++)
            if (cache->lru.rows[slot] != NO_ROW)
                write_back(cache, slot, cache->lru.rows[slot]);
    }
}
