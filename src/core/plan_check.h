/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_CHECK_H
#define NEUROSHARD_CORE_PLAN_CHECK_H

#include "core/plan.h"

/* The independent checker of plans. It shares no code with the search, and it
 * counts memory on its own from the definition above shard_memory
 * (core/problem.h). Every plan is checked before it is written and after it is
 * read. */

/*
 * Checks a plan. Returns 0 if the plan is legal:
 *
 *   - tables have unique printable names, rows, columns and finite figures;
 *   - the shards of each table tile it exactly, or a replicated table is whole
 *     on each device once; no shard is empty;
 *   - the kind of each shard matches the geometry of its table's pieces, and
 *     the table and the problem allow the kind;
 *   - the width of a piece that cuts columns is a multiple of 4;
 *   - pins hold, and all tables of a group are on one device;
 *   - no device holds more than its memory, with the reserve included, and the
 *     memory stored in plan->devices is the memory that the shards take;
 *   - costs are absent (devices NULL, or NAN throughout) or finite, and they
 *     add up: total = compute + bwd + fwd on each device, the plan's total is
 *     the largest of them, and the lower bound is not above it.
 *
 * Otherwise ERR_INPUT, or ERR_NO_PLAN if only the memory is exceeded. The
 * message is one sentence that names the table, the device or the index in
 * shards[], and for memory also the items.
 *
 * Shards may be in any order. O(n log n) for n shards: 100,000 take a few
 * hundredths of a second.
 */
int plan_check(const struct plan *plan, struct err *err) MUST_CHECK;

#endif
