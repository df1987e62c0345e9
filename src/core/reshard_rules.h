/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_RESHARD_RULES_H
#define NEUROSHARD_CORE_RESHARD_RULES_H

#include "core/plan_moves.h"

/*
 * Changes of a plan that TorchRec's DistributedModelParallel.reshard can make
 * in a running job (TorchRec 376cac6a).
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
 *
 * The functions return the reason why reshard cannot make a change, or NULL.
 */

/* For all tables of a job. before[n_tables] has the pieces that the current
 * plan `from` has of the tables of the new problem. */
const char *reshard_bars_job(const struct problem *from,
                             const struct problem *now,
                             const struct table_pieces *before);
/* For a table whose properties have changed. */
const char *reshard_bars_table(const struct table *before,
                               const struct table *after);
/* For a table that has these pieces in one of the two plans. */
const char *reshard_bars_pieces(const struct table_pieces *pieces);

#endif
