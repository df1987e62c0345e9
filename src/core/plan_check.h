/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_CHECK_H
#define NEUROSHARD_CORE_PLAN_CHECK_H

#include "core/plan.h"

/*
 * The judge. Shares no code with the search and counts memory by itself from
 * the definition above shard_memory (core/problem.h): every plan passes here
 * before it is written and after it is read.
 */

/*
 * 0 where the plan is legal:
 *
 *   - tables have unique printable names, rows, columns, finite figures;
 *   - each table's shards tile it exactly, or a replicated table stands whole
 *     on each device once; no shard is empty;
 *   - a shard's kind is what the geometry of its table's pieces amounts to,
 *     and the table and the problem allow it;
 *   - a piece that cuts columns is a multiple of 4 wide;
 *   - pins hold, and all tables of a group are on one device;
 *   - no device holds more than its memory, the reserve included, and the
 *     memory stored in plan->devices is what the shards take;
 *   - costs are absent (devices NULL, or NAN throughout) or finite and add up:
 *     total = compute + bwd + fwd on each device, the plan's total is the
 *     largest, and the bound is not above it.
 *
 * Else ERR_INPUT, or ERR_NO_PLAN where memory alone is exceeded, with one
 * sentence that names the table, device or shards[] index, and for memory the
 * items. Shards may stand in any order. O(n log n) in the shards: 100,000 take
 * a few hundredths of a second.
 */
int plan_check(const struct plan *plan, struct err *err) MUST_CHECK;

#endif
