/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_JOIN_H
#define NEUROSHARD_SEARCH_JOIN_H

#include "search/snapshot.h"

/*
 * Pieces that meet. TorchRec takes all column pieces of a table on one device
 * for as wide as the first, and several cost more than one that is as wide as
 * all of them; as columns may be given out in any order, one it can always be.
 * So a change leaves one piece of the columns of a unit on a device at most,
 * and one piece of each row block; what was built together and never changed is
 * joined in the plan (plan_join_columns). Only where a plan is to be replaced,
 * pieces of equal widths that do not touch may stay as they stand.
 */

/* Before a trial is summed up: column pieces that it puts where some of their
 * unit are become one. False where it may not come true: where that would be a
 * whole table that may only be cut, where pieces of one row block meet, or
 * where columns of a sequence would be of several widths.
 * Nothing where trial->is_home. */
bool trial_join(struct trial *trial, const struct layout *layout);

/* The same for a snapshot: columns only. */
bool snapshot_join(struct snapshot *snapshot, const struct parts *parts);

/* Whether pieces of these parts and blocks are of the same rows of a grid. */
bool join_same_block(const struct parts *parts, uint32_t part_a,
                     uint32_t block_a, uint32_t part_b, uint32_t block_b);

#endif
