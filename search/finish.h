/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FINISH_H
#define NEUROSHARD_SEARCH_FINISH_H

#include "search/assignment.h"

#include <stdatomic.h>

/* Steps that all searches share: checks of the oracle, the final pricing of a
 * plan, and local search on a finished assignment. */

/*
 * A checked oracle passes all calls on to a cost model, and notes if an answer
 * of the cost model is not finite. A search asks the cost model from many
 * places and threads and compares the answers, so a NaN would silently lose or
 * win a comparison.
 */

struct checked_oracle {
    struct oracle base;          /* the checked oracle, which the search asks */
    const struct oracle *oracle; /* the cost model, which answers; not owned */
    atomic_bool *is_bad;   /* set if an answer of the cost model was not finite;
                              points to `noted` */
    atomic_bool noted;     /* an answer of the cost model was not finite */
    struct oracle_ops ops; /* functions of `base`, the checked oracle */
    double start_ms;       /* clock time at which the search began */
};

/* Initialises a checked oracle. The struct must not be moved afterwards. */
void checked_oracle_init(struct checked_oracle *checked,
                         const struct oracle *oracle);
/* Returns the time on clock_ms() at which a search that began with
 * checked_oracle_init has used limit_ms milliseconds (0: no limit, INFINITY).
 */
double search_end_ms(const struct checked_oracle *checked, double limit_ms);
/* Returns why the search has to stop: "done" if an answer of the cost model was
 * not finite, "interrupt", or "time" if limit_ms milliseconds have passed since
 * the search began (0: no limit). Returns NULL if the search may go on. */
const char *stop_reason(const struct checked_oracle *checked, double limit_ms);
/* Fails with ERR_INPUT if an answer of the cost model was not finite. */
int checked_oracle_check(const struct checked_oracle *checked,
                         struct err *err) MUST_CHECK;
/* Finishes a plan whose shards are set: runs checked_oracle_check, derives the
 * kinds of the shards, sets the costs and runs plan_check. If plan->bound_ms is
 * above 0, it must be a lower bound of the cost by this oracle. */
int checked_oracle_finish(const struct checked_oracle *checked,
                          struct plan *plan, struct arena *arena,
                          struct err *err) MUST_CHECK;

/*
 * Local search on an assignment that is already good. Each step makes the best
 * single move or swap. The search is deterministic, and its work is bounded.
 */

/* Lowers the total until the total is at most most_ms or no change lowers it
 * further. With by_memory the use of memory is evened out instead: pieces are
 * moved off the device that has filled the largest share of its usable memory,
 * as long as this lowers the largest share and does not change the total.
 * Returns the number of changes priced. */
uint64_t settle(struct snapshot *snapshot, const struct search_space *space,
                bool by_memory, double most_ms);

/* Reduces the number of pieces. A change makes a unit whole, merges pieces of a
 * unit, or gives a unit a sharding of fewer pieces. Cheap changes are made
 * first. Between two changes a local search improves the other pieces. The part
 * of the step time that the job waits for rises by at most the share rise_frac.
 * The memory limits are kept, and the migration is at most move_limit_bytes. If
 * rise_frac is 0, nothing is changed.
 *
 * The sequence of changes is the same for any rise_frac. The result is the
 * assignment in this sequence that has the fewest pieces and keeps the limits
 * above. Among assignments with equally few pieces it is the cheapest. So a
 * larger rise_frac never gives more pieces, and for the same number of pieces
 * never a higher cost. Returns the number of changes priced. */
uint64_t simplify(struct snapshot *snapshot, const struct search_space *space,
                  double rise_frac, uint64_t move_limit_bytes);

#endif
