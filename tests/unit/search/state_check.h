/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_SEARCH_STATE_CHECK_H
#define NEUROSHARD_TESTS_UNIT_SEARCH_STATE_CHECK_H

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
 *     totals    the largest of each term, who has it, the total
 *
 * Where this is linked, searches do so themselves after every so manieth change
 * of a layout (layout_check_every, 1 in make test-long), and abort where
 * something is wrong.
 */

/* 0, or -1 and ERR_INPUT. The layout was priced, or committed since. */
int layout_check(const struct layout *layout, struct err *err) MUST_CHECK;

#endif
