/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_CACHE_USE_H
#define NEUROSHARD_CORE_CACHE_USE_H

#include "core/cache_model.h"
#include "core/cache_pools.h"

/* Predicted use of the caches of a plan. */

/* Returns the curves of all tables, [n_tables], for the problem's batch, in the
 * arena. A table that cannot be cached has an empty curve. Equal tables are
 * computed once. */
const struct cache_curve *cache_curves(const struct problem *problem,
                                       struct arena *arena);

/* Returns the lookups of the table in a batch, as its curve counts them. */
double cache_lookups(const struct problem *problem, uint32_t table);

/* Use of a pool of a plan. */
struct pool_use {
    double rows_per_batch; /* different rows that a batch uses */
    double fills;          /* rows per batch that are not in the cache */
    double fill_bytes;
    enum cache_basis basis; /* worst basis of the fills of its pieces */
};

/* Fills uses[pools->n] with the use of the pools of a plan. */
void pools_use(const struct plan *plan, const struct cache_pools *pools,
               const struct cache_curve *curves, struct pool_use *uses);

/* Sets rows_per_batch, fills and miss of the caches of plan->devices, which
 * plan_fill_caches has filled. */
void plan_use_caches(struct plan *plan, const struct cache_curve *curves);

#endif
