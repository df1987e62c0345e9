/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_CHECK_H
#define NEUROSHARD_CORE_PLAN_CHECK_H

#include "core/plan.h"

/* The independent checker of plans. It shares no code with the search. It has
 * its own code to count memory, which follows the definition in the comment of
 * shard_memory (core/problem.h). Every plan is checked before it is written and
 * after it is read. */

/*
 * Checks a plan. Returns 0 if the plan is legal:
 *
 *   - tables have unique printable names, rows, columns and finite figures;
 *   - no shard is empty, and the shards of each table tile the table exactly (a
 *     replicated table is whole on each device exactly once);
 *   - the kind of each shard matches the geometry of its table's pieces, and
 *     the table and the problem allow the kind;
 *   - the width of a piece that cuts columns is a multiple of 4;
 *   - pinned tables are on their device, and all tables of a group are on one
 *     device;
 *   - a table has one tier, which the table, its kind, its target and the
 *     cluster allow; exactly cached tables have load factors, and the caches
 *     stored in plan->devices follow from them (core/tier_check.h);
 *   - the pieces of each host fit the cluster's host memory for tables;
 *   - the plan obeys the rules of its target (core/target_rules.h);
 *   - on each device, shards and reserve fit in its memory, and the memory
 *     stored in plan->devices is the memory that the shards take;
 *   - costs are either absent (`devices` is NULL, or all costs are NAN) or
 *     finite. Finite costs add up: total = compute + bwd + fwd on each device.
 *     The plan's total is the largest total of a device, and the lower bound is
 *     at most the plan's total.
 *
 * Otherwise returns ERR_INPUT, or ERR_NO_PLAN if the only fault is that a
 * device has too little memory. The message is one sentence that names the
 * table, the device or the index in shards[]. A message about memory also lists
 * the items of the memory.
 *
 * Shards may be in any order. Takes O(n log n) time for n shards: a few
 * hundredths of a second for 100,000 shards.
 */
int plan_check(const struct plan *plan, struct err *err) MUST_CHECK;

#endif
