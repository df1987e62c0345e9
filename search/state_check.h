/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_STATE_CHECK_H
#define NEUROSHARD_SEARCH_STATE_CHECK_H

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
 * Searches do so themselves after every so manieth change of a layout, and
 * abort where something is wrong.
 */

/* 0, or -1 and ERR_INPUT. The layout was priced, or committed since. */
int layout_check(const struct layout *layout, struct err *err) MUST_CHECK;

/* Every so manieth commit of a layout is checked; 0: none. 256 in debug and
 * sanitizer builds (make CHECK_EVERY=256), else 0; tests set it before a
 * search, and in make test-long to 1. */
extern uint32_t layout_check_every;
void layout_check_sometimes(struct layout *layout);

#endif
