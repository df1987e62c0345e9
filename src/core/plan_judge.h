/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_JUDGE_H
#define NEUROSHARD_CORE_PLAN_JUDGE_H

#include "core/plan.h"

/* The part of plan_check that checks the pieces of one table. Its error
 * messages cut names after 80 bytes, so that the rest of the message fits. */

/* The n >= 1 pieces of one table: pointers into plan->shards, sorted by
 * shard_compare. The caller has checked that each piece lies inside the table
 * and is not empty. */
struct judged {
    const struct plan *plan;
    const struct table *table;
    const struct shard *const *pieces; /* [n] */
    size_t n;
};
/* Checks that the pieces tile the table or are replicas, and that their kinds,
 * widths and devices are allowed. Takes O(n log n + R) time. */
int judge_pieces(const struct judged *judged, struct err *err) MUST_CHECK;

#endif
