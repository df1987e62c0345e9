/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_TIER_CHECK_H
#define NEUROSHARD_CORE_TIER_CHECK_H

#include "core/plan_judge.h"

/* The part of plan_check that checks the tiers of tables and the caches of
 * devices. It counts slots from their definition (core/cache_pools.h), without
 * the code of core/cache_pools.c. */

/* Checks that the problem may have tiers, if its cluster has host memory for
 * tables. */
int tier_check_problem(const struct problem *problem,
                       struct err *err) MUST_CHECK;
/* Checks that all pieces of a table have one tier, that the table may have this
 * tier, and that exactly a cached table has a load factor. The pieces have
 * passed judge_pieces. */
int tier_check_pieces(const struct judged *judged, struct err *err) MUST_CHECK;
/* Counts the slots of all caches: adds their memory to items[R], and checks
 * that the caches stored in plan->devices (if any) are these. pieces[n_shards]
 * are all shards of the plan, sorted. */
int tier_check_caches(const struct plan *plan,
                      const struct shard *const *pieces,
                      struct memory_items *items, struct err *err) MUST_CHECK;
/* Checks that the host memory of the pieces of each host's devices, items[R],
 * fits. Fails with ERR_NO_PLAN. */
int tier_check_hosts(const struct plan *plan, const struct memory_items *items,
                     struct err *err) MUST_CHECK;

#endif
