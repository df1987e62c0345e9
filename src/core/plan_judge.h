/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_JUDGE_H
#define NEUROSHARD_CORE_PLAN_JUDGE_H

#include "core/plan.h"

/* The part of plan_check that judges the pieces of one table. In sentences
 * names are cut at 80 bytes, so that the rest of them stands. */

/* The n >= 1 pieces of one table, in plan->shards, by shard_compare, each known
 * to be inside it and not empty. */
struct judged {
    const struct plan *plan;
    const struct table *table;
    const struct shard *const *pieces; /* [n] */
    size_t n;
};
/* They tile the table or are replicas, and their kinds, widths and devices are
 * as they must be. O(n log n + R). */
int judge_pieces(const struct judged *judged, struct err *err) MUST_CHECK;

#endif
