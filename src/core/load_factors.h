/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_LOAD_FACTORS_H
#define NEUROSHARD_CORE_LOAD_FACTORS_H

#include "core/cache_use.h"

/*
 * Sets the load factors of the cached tables of a plan, in the arena, so that
 * its caches take the memory that the plan leaves on each device. Memory is
 * divided among the caches of a device so that they miss the fewest bytes
 * (core/cache_share.h).
 *
 * A table has one factor for all devices. It gets the least factor that a cache
 * of its pieces may have, and then all factors rise while no cache exceeds its
 * memory. A plan without cached tables has no factors.
 *
 * The shards must be sorted and have their kinds. curves[n_tables] are those of
 * cache_curves.
 */
void plan_choose_factors(struct plan *plan, const struct cache_curve *curves,
                         struct arena *arena);

#endif
