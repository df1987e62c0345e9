/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_MOVES_H
#define NEUROSHARD_SEARCH_MOVES_H

#include "search/candidate.h"

/*
 * Proposals of a search: one random change of an assignment. It is either a
 * small move of a kind listed in search/tuning.h, or a ruin-and-recreate move,
 * which removes some tables and places them again. Some of these tables get a
 * new sharding: whole, even columns, rows, a grid, or replicas. Half of all
 * proposals begin on a device that sets the total.
 */

/* Fills an empty candidate with a random change, and merges pieces that meet
 * (search/candidate.h). It stays empty if the random choices allow no change.
 * Memory limits are checked later, by candidate_sum. */
void propose(struct candidate *candidate, const struct assignment *assignment,
             struct rng *rng);

/*
 * Ruin and recreate (Schrimpf et al. 2000): some tables are removed from an
 * assignment and placed again one after the other, each in its own sharding. To
 * cut a table in another way often pays only after other tables have made room
 * for it or have filled the gap. Here all that is one change.
 *
 * A table that is whole or cut by columns is wrapped around the devices, as
 * McNaughton (1959) wraps jobs around machines: it fills a device up to a
 * target load, is cut there, and continues on the next device. So there are few
 * pieces and no gaps. The target is a random load between the mean and the
 * highest one. Pieces of other shardings go to the least loaded device, one by
 * one. Loads are sums of space->load_ms. A device with room for the piece comes
 * before one without.
 */

/* Fills an empty candidate with the changes that give each of n_shardings units
 * this sharding. For a sharding by columns the number of pieces is chosen anew.
 * The units must be different. A unit that is bound to a device stays on it.
 * O(devices x pieces). */
void rebuild(struct candidate *candidate, const struct assignment *assignment,
             const struct sharding *const *shardings, uint32_t n_shardings,
             struct rng *rng);

#endif
