/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_REPLAN_H
#define NEUROSHARD_SEARCH_REPLAN_H

#include "search/search.h"

/*
 * A plan to replace another: for new tables, other GPUs or changed loads, with
 * little movement. What moves is counted as core/plan_moves.h does; tables that
 * are new are no movement.
 */

#define NO_MOVE_LIMIT UINT64_MAX

/*
 * As search_full, but from where the tables of `from` are: the least total that
 * moves at most limit_bytes. The annealing starts there, the limit is one
 * more thing that a layout may exceed only on the way; what has moved for
 * nothing goes back. Without a limit, or where it is as large as all tables,
 * the plan costs no more than that of search_full, to a ten-thousandth.
 *
 * plan->search is "replan". ERR_NO_PLAN also where nothing was found within the
 * limit: the sentence says how much movement would do. `from` has passed
 * plan_check.
 */
int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options, struct arena *arena,
                  struct err *err) MUST_CHECK;

#endif
