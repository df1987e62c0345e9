/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_MOVES_H
#define NEUROSHARD_SEARCH_MOVES_H

#include "search/candidate.h"

/*
 * Proposals of a search. A proposal is one random change of an assignment:
 * either a small move of a kind listed in search/tuning.h, or a
 * ruin-and-recreate move, which removes some tables and places them again. Some
 * of the removed tables get a new sharding: whole, even columns, rows, a grid,
 * or replicas. Half of all proposals begin on a device that sets the total.
 */

/* Fills an empty candidate with a random change, and merges pieces that meet on
 * a device (search/candidate.h). The candidate stays empty if the random
 * choices lead to no possible change. candidate_sum checks the memory limits
 * later. */
void propose(struct candidate *candidate, const struct assignment *assignment,
             struct rng *rng);

/*
 * Ruin and recreate (Schrimpf et al. 2000): some tables are removed from an
 * assignment and placed again one after the other, each in its own sharding. A
 * new way to cut a table often pays only after other tables have made room for
 * its pieces, or have filled the gap that it has left. Ruin and recreate does
 * all of this in one change.
 *
 * A table that is whole or cut by columns is wrapped around the devices, as
 * McNaughton (1959) wraps jobs around machines: it fills a device up to a
 * target load, is cut there, and continues on the next device. So there are few
 * pieces and no gaps. The target is a random load between the mean and the
 * highest load of a device. Pieces of other shardings go to the least loaded
 * device, one by one. Devices that have room for the piece are preferred to
 * devices that have not. Loads are sums of space->load_ms.
 */

/* Fills an empty candidate with the changes that give n_shardings units new
 * shardings, one sharding for each unit in the list. If a sharding cuts by
 * columns, the number of its pieces is chosen anew. The units must be
 * different. A unit that is bound to a device stays on it. Takes O(devices x
 * pieces). */
void rebuild(struct candidate *candidate, const struct assignment *assignment,
             const struct sharding *const *shardings, uint32_t n_shardings,
             struct rng *rng);

/* Adds changes to the candidate that place this unit as it is in the current
 * plan. Adds nothing if the unit is already placed like this. */
void current_propose(struct candidate *candidate,
                     const struct assignment *assignment, uint32_t unit);

#endif
