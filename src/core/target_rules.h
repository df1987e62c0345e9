/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_TARGET_RULES_H
#define NEUROSHARD_CORE_TARGET_RULES_H

#include "core/plan.h"
#include "core/target_traits.h"

/*
 * Rules of the frameworks that run plans. The search makes no shard that breaks
 * a rule of the problem's target, plan_check refuses plans that do, and the
 * writers of plans check the rules of their format.
 */

/* Returns the mask of the shard kinds that the target, the problem and the
 * table all allow. Takes O(1) time, or O(n_tables) if the target has
 * sequences_bar_replicas. */
unsigned problem_kinds(const struct problem *problem, size_t table);

/* Returns how the target deals the rows of this table. */
enum target_rows target_rows_of(const struct problem *problem,
                                const struct table *table);

/* Number of rows per device from which tables are cut by a target that deals
 * rows (TARGET_ROWS_DEALT). The devices with one row more then have 0.1 % more
 * rows at most, and the search may take all devices for equal. */
#define TARGET_LEAST_DEALT 1000

/* Gives the n shards of one table the rows and columns that a target with
 * TARGET_ROWS_DEALT gives them: the first columns, and of these the first rows,
 * are on the first devices. Does nothing if the table is whole or replicated,
 * or if the target deals no rows. All shards must be equally wide. The devices
 * stay. Sorts the shards by device. */
void target_deal(const struct problem *problem, struct shard *shards, size_t n);

/* Gives tables whose rows the target deals the row order `uniform`. */
void target_adopt(struct problem *problem);

/* Checks the rules about tables, which no plan can change. Fails with
 * ERR_INPUT; the message names the table. */
int target_check_tables(const struct problem *problem,
                        struct err *err) MUST_CHECK;

/* Checks all rules of the plan's target. The plan must obey the general rules
 * of plan_check, and its shards must be sorted. Fails with ERR_INPUT; the
 * message names the table. */
int target_check(const struct plan *plan, struct err *err) MUST_CHECK;

/* Checks all rules of `target`, whatever the plan's own. */
int target_check_as(const struct plan *plan, enum target target,
                    struct err *err) MUST_CHECK;

#endif
