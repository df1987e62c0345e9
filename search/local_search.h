/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_LOCAL_SEARCH_H
#define NEUROSHARD_SEARCH_LOCAL_SEARCH_H

#include "search/search_space.h"
#include "search/snapshot.h"

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

/* Limits of a simplification. */
struct simplify_limits {
    double most_ms; /* highest total; below the total of the assignment, nothing
                       is changed */
    uint64_t move_limit_bytes; /* most migration, or NO_MOVE_LIMIT */
    uint64_t most_priced; /* number of changes priced after which it ends */
    /* time on clock_ms() at which it ends, or INFINITY; an interrupt ends it,
     * too */
    double end_ms;
    /* number of pieces copied to save assignments, after which an assignment is
     * saved only if no further change of the same kind is found */
    uint64_t most_copied;
};
/* Value of most_copied for a search of a list with more than SIMPLIFY_LONG
 * tables; others have no limit. Copying that many pieces takes a second.
 * Without the limit, a list of 200,000 tables whose start has 2,000 cut tables
 * copies for a minute. */
#define SIMPLIFY_LONG 50000
#define SIMPLIFY_COPIED 10000000
static inline uint64_t simplify_most_copied(size_t n_tables)
{
    return n_tables > SIMPLIFY_LONG ? SIMPLIFY_COPIED : UINT64_MAX;
}

/* Simplifies an assignment: reduces the number of units whose training it
 * changes, and then the number of pieces. A change makes a unit whole, merges
 * pieces of a unit, gives a unit a sharding of fewer pieces, or one that does
 * not change its training. Cheap changes are made first. Between two changes a
 * local search improves the other pieces. Memory limits are kept.
 *
 * Unless it ends early, the sequence of changes is the same for any most_ms.
 * The result is the simplest assignment in this sequence that keeps the limits.
 * Among equally simple assignments it is the cheapest. So a larger most_ms
 * never gives a less simple assignment, and for an equally simple one never a
 * higher cost. Returns the number of changes priced. */
uint64_t simplify(struct snapshot *snapshot, const struct search_space *space,
                  const struct simplify_limits *limits);

#endif
