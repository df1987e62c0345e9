/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_RANK_CACHES_H
#define NEUROSHARD_EXEC_RANK_CACHES_H

#include "exec/placement.h"

/*
 * Caches of the cached pieces of ranks, on CPUs.
 *
 * All rows of a cached piece are in host memory (piece->d_weight). The slots of
 * its cache are memory of their own. A row that enters a slot is copied there,
 * and is looked up and updated there until it leaves the slot and is written
 * back. piece->d_places tells where each row is. Row-wise optimizer states stay
 * where they are. Results do not depend on the cache, bit for bit.
 */

/* Opens the caches of loaded ranks. They are empty. */
void rank_caches_open(struct placement *placement, struct rank_range ranks);
/* Closes all caches. Rows that were not written back are lost. */
void rank_caches_close(struct placement *placement);

/* Adds rows of a cached piece to the current batch of its cache: ids[n], which
 * count from the piece's first row and may repeat. */
void pool_cache_add(const struct piece *piece, const uint32_t *ids, size_t n);
/* Processes the current batch: moves its rows into the cache, and counts. */
void pool_cache_fill(struct pool_cache *cache);
/* Copies the rows in the caches to host memory, for all loaded ranks. They stay
 * in the caches. */
void rank_caches_write_back(const struct placement *placement);

#endif
