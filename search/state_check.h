/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_STATE_CHECK_H
#define NEUROSHARD_SEARCH_STATE_CHECK_H

#include "base/err.h"
#include "search/state.h"

/*
 * A layout keeps lists, sums and totals that each change updates; this works
 * them all out again from the pieces alone and says the first that differs:
 *
 *     lists     each piece is in its unit's list once, on its device in its
 *               slot; free pieces are in the free list
 *     tiling    the plan that they come to passes plan_check, memory aside
 *     devices   bytes, excess and moved bytes to the byte; sums, costs and
 *               loads to rounding, as they are added up afresh now and then
 *     totals    the largest terms and runners-up, the slowest, the total
 *
 * Compile with -DLAYOUT_CHECK_EVERY=N, and every N-th layout_commit checks and
 * aborts where something is wrong: CONFIG=debug and CONFIG=asan do.
 */

/* 0, or -1 and ERR_INPUT. The layout was priced, or committed since. */
int layout_check(const struct layout *layout, struct err *err) MUST_CHECK;

#endif
