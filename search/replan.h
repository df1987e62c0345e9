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
 * The least total that moves at most limit_bytes: from the layout nearest to
 * `from`, made even, annealed under limits that rise to this one, so that more
 * movement never makes a plan worse; and from what search_full finds, with its
 * GPUs named such that little moves. Then as little moves as will do for that
 * total, to a ten-thousandth. Without a limit, or where it is as large as all
 * tables, the plan costs no more than that of search_full, to a ten-thousandth.
 * Where nothing may move and no table is new, has to move or is replicated, the
 * plan stays as it is. Takes two to three times what search_full does.
 *
 * plan->search is "replan". ERR_NO_PLAN also where nothing was found within the
 * limit: the sentence says how much movement would do, and how much of it is of
 * GPUs that are gone and of tables cut by rows over all GPUs. `from` has passed
 * plan_check.
 */
int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options, struct arena *arena,
                  struct err *err) MUST_CHECK;

#endif
