/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FRONT_H
#define NEUROSHARD_SEARCH_FRONT_H

#include "search/snapshot.h"

/* Maximum number of points of the front. If there would be more, the point with
 * the least gain is dropped. The first and the last point are never dropped. */
#define FRONT_MAX 64
/* Least difference between two totals, as a share, that counts as an
 * improvement. Smaller differences are rounding errors, because sums are added
 * up in different orders. A new assignment that is better by less does not
 * replace the current one. */
#define ROUNDING_FRAC 1e-9
/* Pareto front: assignments that keep the memory limits. No point has both more
 * migration and a higher total than another point. Migration rises and totals
 * fall from point to point. */
struct front {
    struct snapshot points[FRONT_MAX]; /* priced, owned */
    uint32_t n;
};

/* Adds a point to the front. Returns its snapshot, which the caller fills,
 * including the total, or NULL if the point does not belong on the front. */
struct snapshot *front_add(struct front *front, uint64_t moved_bytes,
                           double total_ms);
/* Returns the cheapest point within this limit on migration, or NULL. */
const struct snapshot *front_within(const struct front *front,
                                    uint64_t limit_bytes);
/* Removes each point that is cheaper than the point before it by less than the
 * share gain_frac. */
void front_thin(struct front *front, double gain_frac);
void front_release(struct front *front);

#endif
