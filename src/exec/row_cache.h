/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_ROW_CACHE_H
#define NEUROSHARD_EXEC_ROW_CACHE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Cache of rows by the rule of FBGEMM's LRU cache. It decides which rows are in
 * which slots. The caller moves the rows (exec/rank_caches.h).
 *
 * Rule: the cache has sets of 32 slots. A hash of the row's number determines
 * its set. A batch is processed in two passes over its distinct rows. The first
 * pass looks for all rows, and stamps the slots of those found with the batch.
 * In the second pass each missing row takes the slot of its set with the oldest
 * stamp. If this slot has the stamp of this batch, the row stays outside the
 * cache, and the batch uses it where it is: a conflict.
 */

#define ROW_CACHE_WAYS 32
#define NO_ROW UINT64_MAX
/* Bytes of a slot's row number and stamp. */
#define ROW_CACHE_SLOT_BYTES (sizeof(uint64_t) + sizeof(uint32_t))

struct row_cache {
    uint64_t n_sets;
    uint64_t *rows;   /* owned; [n_sets][ROW_CACHE_WAYS] row, or NO_ROW */
    uint32_t *stamps; /* owned; [n_sets][ROW_CACHE_WAYS] batch of the last use;
                       * 0: never used */
    uint32_t batch;   /* number of batches processed */
    uint64_t n_used;  /* number of slots that hold rows */
};

/* A row that enters a slot, and the row that leaves it, or NO_ROW. */
struct row_move {
    uint64_t row, evicted, slot;
};

/* Opens an empty cache. n_slots is a multiple of ROW_CACHE_WAYS, at least one
 * set. */
void row_cache_open(struct row_cache *cache, uint64_t n_slots);
void row_cache_close(struct row_cache *cache); /* accepts a zeroed struct */
/* Empties the cache. */
void row_cache_clear(struct row_cache *cache);

/* Processes the next batch, which uses rows[n]: distinct and in ascending
 * order. Stores the moves, which are to be made in this order, in moves[n], and
 * their number in *n_moves. Returns the number of misses; misses that are
 * not moves are conflicts. */
size_t row_cache_use(struct row_cache *cache, const uint64_t *rows, size_t n,
                     struct row_move *moves, size_t *n_moves);

#endif
