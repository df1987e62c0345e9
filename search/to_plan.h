/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_TO_PLAN_H
#define NEUROSHARD_SEARCH_TO_PLAN_H

#include "core/plan.h"
#include "search/search_space.h"
#include "search/snapshot.h"

/* Translates an assignment into the shards of a plan. An assignment knows the
 * widths and devices of its column pieces but not their columns, which are
 * chosen here. */

/* Writes the n pieces of a unit as shards[n] of one of its tables. Columns are
 * given to column pieces in the order of the pieces. `table` is an index into
 * the tables of the problem. */
void pieces_to_shards(struct shard *shards, const struct search_space *space,
                      uint32_t table, const struct change *pieces, uint32_t n);
/* Writes the pieces of the snapshot as shards of the plan, which live in the
 * arena. Columns of a table are given to its pieces in order, the widest piece
 * first. In re-planning the pieces get their columns such that few columns move
 * (current_order). */
void snapshot_to_plan(const struct snapshot *snapshot,
                      const struct search_space *space, struct plan *plan,
                      struct arena *arena);
/* Merges column pieces of a unit that are on the same device, as candidate_join
 * does (search/candidate.h). Returns false if some of these pieces may not be
 * merged. */
bool snapshot_join(struct snapshot *snapshot, const struct search_space *space);
/* Sorts the n column pieces of a table; the pieces then get their columns in
 * this order. The order is chosen such that few columns move. It is built piece
 * by piece. The next piece is the one with the largest advantage of this
 * position over its best later position, counted in columns that its device
 * keeps. If the pieces are the same as in the current plan, they get the same
 * columns as in the current plan. The result does not depend on the initial
 * order of the pieces. If pieces keep their cuts, the order is that of the
 * current plan. Takes O(n^2). */
void current_order(const struct search_space *space, uint32_t table,
                   struct change *pieces, uint32_t n);

#endif
