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
