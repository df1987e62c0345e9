/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PUBLISHED_H
#define NEUROSHARD_SEARCH_PUBLISHED_H

#include "search/search.h"
#include "search/search_space.h"
#include "search/snapshot.h"

/* Runs the published search on a search space. Fills *found with an assignment
 * and its total. Pieces of the assignment are whole units, halves, quarters and
 * so on. Sets `stopped` and `n_evaluations` of the plan. Returns false, with a
 * total of INFINITY, if a unit can be neither whole nor halved, or if the
 * greedy placement finds no device for some pieces. The result is the same at
 * any thread count. */
bool published_find(struct snapshot *found, struct plan *plan,
                    const struct search_space *space,
                    const struct search_options *options);
/* Merges column pieces of a unit that meet on a device. If the merged
 * assignment costs more than found->total_ms, pieces are swapped until it costs
 * no more. Sets found->total_ms to the new total, or to INFINITY if some pieces
 * may not be merged. Returns the number of changes priced. */
uint64_t published_join(struct snapshot *found,
                        const struct search_space *space);

#endif
