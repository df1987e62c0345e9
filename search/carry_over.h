/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CARRY_OVER_H
#define NEUROSHARD_SEARCH_CARRY_OVER_H

#include "search/search_space.h"
#include "search/snapshot.h"

/* Translates a plan into an assignment, as it is or adapted to a problem that
 * has changed. */

/* Converts a plan of this problem to an assignment. Pieces of a table that are
 * on the same device are merged. Returns false if the plan has pieces that the
 * search space does not have. */
bool snapshot_from_plan(struct snapshot *out, const struct search_space *space,
                        const struct plan *plan);

/*
 * Fills *out with the assignment nearest to the current plan (space->current).
 * Pieces stay on their device if the device still exists and the table can
 * still be cut in this way. All other pieces are placed one by one, those of
 * the dearest units first:
 *
 * - A piece whose device is gone goes to the best device.
 * - A table that is new, or that can no longer be cut as it is, gets the best
 *   sharding. rebuild (search/moves.h) places its pieces.
 *
 * The best choice is the one after which the assignment so far has the least
 * excess. Among equal excess it is the one with the least total. The result may
 * exceed the memory and the migration limit.
 */
void carry_over(struct snapshot *out, const struct search_space *space);

/* Stores the pieces of an assignment by unit in current->nearest, in the arena.
 * The pieces of a unit have the reverse order of the snapshot. */
void current_keep_nearest(struct current_plan *current,
                          const struct snapshot *nearest,
                          const struct search_space *space,
                          struct arena *arena);

#endif
