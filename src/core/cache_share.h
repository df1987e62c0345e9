/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_CACHE_SHARE_H
#define NEUROSHARD_CORE_CACHE_SHARE_H

#include <stddef.h>

/* Division of memory among caches, so that they miss the fewest bytes. */

/* Use of a cache as a function of its slots: at knot k it has rows[k] slots and
 * misses bytes[k] per batch; linear in between (core/cache_model.h). */
struct cache_demand {
    /* [n_knots] ascending from 0, and falling to 0 */
    const double *rows, *bytes;
    double slot_bytes; /* bytes of a slot, > 0 */
};

/* Largest number of knots. */
#define CACHE_SHARE_KNOTS 64

/*
 * Fills slots[n] with the slots of n caches that share `bytes` of memory. All
 * memory is used, up to the last knot of each cache.
 *
 * Method: memory goes where a byte of it saves most missed bytes, along the
 * lower convex hull of each cache's use. The result is optimal if all uses are
 * convex. If not, at most one cache is between two corners of its hull, and it
 * misses more than its hull there.
 *
 * Takes O(n^2 n_knots) time in the worst case.
 */
void cache_share(const struct cache_demand *demands, size_t n, unsigned n_knots,
                 double bytes, double *slots);

/* Returns the bytes that a cache with this number of slots misses per batch. */
double cache_missed_bytes(const struct cache_demand *demand, unsigned n_knots,
                          double slots);

#endif
