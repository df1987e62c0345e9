/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_TARGET_TIERS_H
#define NEUROSHARD_CORE_TARGET_TIERS_H

#include "core/target_traits.h"

/* Rules of a target about tables in host memory (enum tier). */

/* Returns the mask (1 << enum tier) of the tiers that the cluster, the target
 * and the table all allow. It has no bit of TIER_CACHED if no cache holds the
 * table's precision. Takes O(1) time. */
unsigned problem_tiers(const struct problem *problem, size_t table);
/* Returns which of these kinds of the table the tier allows. Replicas are in
 * TIER_HBM, and row blocks are cached only if hot rows are spread evenly. */
unsigned tier_kinds(const struct table *table, enum tier tier, unsigned kinds);
/* Returns whether the target caches a table that is cut by rows over n_ways
 * devices. TorchRec counts the table's load factor on all of them, so none may
 * be without rows. */
bool target_caches_blocks(enum target target, const struct table *table,
                          uint64_t n_ways);

/* Checks the tier of a table, of which a shard is given. Fails with ERR_INPUT;
 * the message names the table. */
int target_check_tier(const struct problem *problem, enum target target,
                      const struct shard *shard, struct err *err) MUST_CHECK;

#endif
