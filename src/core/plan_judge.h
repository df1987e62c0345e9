/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_JUDGE_H
#define NEUROSHARD_CORE_PLAN_JUDGE_H

#include "core/plan.h"

/* The part of plan_check that judges the pieces of one table. */

/* Names are cut here, so that the rest of a sentence stands. */
#define JUDGE_NAME "'%.80s'"

/* The n >= 1 pieces of one table, indices into plan->shards, each known to be
 * inside it and not empty: they tile it or are replicas, and their kinds,
 * widths and devices are as they must be. O(n log n + R). */
int judge_pieces(const struct plan *plan, const size_t *piece, size_t n,
                 struct err *err) MUST_CHECK;

#endif
