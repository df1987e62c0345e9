/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FINISH_H
#define NEUROSHARD_SEARCH_FINISH_H

#include "search/assignment.h"

#include <stdatomic.h>

/* Steps that all searches share: checks of the oracle, the final pricing of a
 * plan, and local search on a finished assignment. */

/*
 * Checked oracle: passes all calls on to a cost model and notes if an answer
 * was not finite. A search asks the cost model from many places and threads and
 * compares the answers, so a NaN would silently lose or win a comparison.
 */

struct checked_oracle {
    struct oracle base;          /* the checked oracle, which the search asks */
    const struct oracle *oracle; /* the cost model, which answers; not owned */
    atomic_bool *is_bad;         /* points to `noted` */
    atomic_bool noted;           /* an answer was not finite */
    struct oracle_ops ops;       /* functions of `base` */
    double start_ms;             /* clock time at which the search began */
};

/* Initialises a checked oracle. The struct must not be moved afterwards. */
void checked_oracle_init(struct checked_oracle *checked,
                         const struct oracle *oracle);
/* Returns why the search has to stop: "done" if an answer was not finite,
 * "interrupt", or "time" if limit_ms have passed since it began (0: no limit).
 * Returns NULL if the search may go on. */
const char *stop_reason(const struct checked_oracle *checked, double limit_ms);
/* Fails with ERR_INPUT if an answer was not finite. */
int checked_oracle_check(const struct checked_oracle *checked,
                         struct err *err) MUST_CHECK;
/* Finishes a plan whose shards are set: runs checked_oracle_check, derives the
 * kinds, sets the prices and runs plan_check. If plan->bound_ms is above 0, it
 * must be a bound by this oracle. */
int checked_oracle_finish(const struct checked_oracle *checked,
                          struct plan *plan, struct arena *arena,
                          struct err *err) MUST_CHECK;

/*
 * Local search on a good assignment: always makes the best single move or swap.
 * It is deterministic, and its work is bounded.
 */

/* Lowers the total until it is at most most_ms or no change lowers it. With
 * by_memory it evens the memory instead: it moves pieces off the device that
 * has filled the largest share of its usable memory, as long as this lowers the
 * largest share and the total stays the same. Returns the number of changes
 * priced. */
uint64_t settle(struct snapshot *snapshot, const struct search_space *space,
                bool by_memory, double most_ms);

/* Reduces the number of pieces. A change makes a unit whole, merges pieces of a
 * unit, or gives a unit a sharding of fewer pieces. Cheap changes go first, and
 * between them a local search improves the other pieces. The step time that the
 * job waits for rises by at most the share rise_frac, the memory limits are
 * kept, and no more than move_limit_bytes move. With rise_frac 0 nothing is
 * done.
 *
 * The sequence of changes is the same for any rise_frac. The result is the
 * assignment on it with the fewest pieces and, among those, the cheapest. So a
 * larger rise_frac never gives more pieces, and for the same number of pieces
 * never a higher cost. Returns the number of changes priced. */
uint64_t simplify(struct snapshot *snapshot, const struct search_space *space,
                  double rise_frac, uint64_t move_limit_bytes);

#endif
