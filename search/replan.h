/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_REPLAN_H
#define NEUROSHARD_SEARCH_REPLAN_H

#include "search/search.h"
#include "search/state.h"

/*
 * A plan to replace another: for new tables, tables that grew or shrank, other
 * GPUs or changed loads, with little movement. What moves is counted as
 * core/plan_moves.h does; tables and rows that are new are no movement.
 */

struct replan_point {
    uint64_t moved_bytes;
    double total_ms;
};
struct replan_report {
    /* The old plan as it stands, with the tables of today: grown in place, what
     * has no place beside it; and whether that fits. */
    struct replan_point standing;
    bool standing_fits;
    /* What movement buys: bytes rise, totals fall, each by a ten-thousandth at
     * least. In the arena; filled where the plan is found. */
    struct replan_point *front; /* [n_front] */
    size_t n_front;
};

/*
 * One search, whatever the limit, looks for layouts of which none both moves
 * and costs more than another, and the limit picks the cheapest that moves no
 * more: so more movement never makes a plan worse. It starts from the old plan
 * grown in place (search/carry_over.h) and from what search_full finds, with
 * its GPUs named such that little moves; it anneals without a limit, then under
 * limits that rise from nothing to what the cheapest layout moves; and what it
 * finds goes back home unit by unit. Takes two to three times what search_full
 * does, and without a limit costs no more, to a ten-thousandth.
 *
 * Where a GPU holds more under the old plan, with the tables of today, than its
 * reserve leaves, it may go on to, but never more than that or than it has:
 * under a limit, and where nothing is found else. plan->problem then has so
 * much less reserve there.
 *
 * plan->search is "replan"; report may be NULL. ERR_NO_PLAN also where nothing
 * was found within the limit: the sentence says how much movement would do, and
 * how much of it is of GPUs that are gone and of tables cut by rows into equal
 * blocks. `from` has passed plan_check.
 */
int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options,
                  struct replan_report *report, struct arena *arena,
                  struct err *err) MUST_CHECK;

#endif
