/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_RESHARD_H
#define NEUROSHARD_EMIT_RESHARD_H

#include "emit/plan_diff.h"

/*
 * The part of a change of plans that TorchRec's
 * DistributedModelParallel.reshard can make in a running job, and the part that
 * needs a checkpoint.
 *
 * reshard moves the column pieces of tables of an EmbeddingBagCollection, with
 * their optimizer state, to the ranks of a new plan. TorchRec finds the tables
 * to move by their lists of ranks (output_sharding_plans_delta). So it moves a
 * table only if
 *
 *   - the job keeps its number of ranks, and the table its rows, columns and
 *     precision;
 *   - the table is pooled, and whole or cut by columns in both plans, and both
 *     plans write it as the same sharding type;
 *   - no rank holds two pieces of it in either plan;
 *   - the list of ranks changes, in the order of columns. A change of widths on
 *     the same ranks is invisible to it.
 */

/* Prints the tables that reshard moves, the tables that need a checkpoint with
 * the reason, and the bytes. The text ends in a newline. */
void reshard_print(const struct plan_diff *diff, struct buf *out);
/* Returns the same as JSON, which the caller decrefs: {"reshard": [{"name",
 * "from", "to", "moved_bytes", "torchrec_bytes"}], "checkpoint": [{"name",
 * "reason", "moved_bytes"}], "moved_bytes", "torchrec_bytes", "link_gbps",
 * "reshard_ms", "steps_to_pay"}. The last three are null if unknown. */
json_t *reshard_to_json(const struct plan_diff *diff);

#endif
