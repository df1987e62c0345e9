/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_JUDGE_H
#define NEUROSHARD_CORE_PLAN_JUDGE_H

#include "core/plan.h"

/* The part of plan_check that checks the pieces of one table. Messages cut
 * names at 80 bytes, so that the rest of the message fits. */

/* The n >= 1 pieces of one table: pointers into plan->shards, sorted by
 * shard_compare. Each piece is known to lie inside the table and not to be
 * empty. */
struct judged {
    const struct plan *plan;
    const struct table *table;
    const struct shard *const *pieces; /* [n] */
    size_t n;
};
/* Checks that the pieces tile the table or are replicas, and that their kinds,
 * widths and devices are allowed. O(n log n + R). */
int judge_pieces(const struct judged *judged, struct err *err) MUST_CHECK;

#endif
