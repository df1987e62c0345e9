/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_SEARCH_ASSIGNMENT_CHECK_H
#define NEUROSHARD_TESTS_UNIT_SEARCH_ASSIGNMENT_CHECK_H

#include "search/assignment.h"

/* An assignment keeps lists, sums and totals that each change updates. This
 * check computes all of them again from the pieces and reports the first
 * difference:
 *
 *     lists     each piece is once in its unit's list, and on its device in its
 *               slot; free pieces are in the free list
 *     tiling    the plan made of the pieces passes plan_check, memory aside
 *     devices   bytes, excess and moved bytes match exactly; sums, costs and
 *               loads match within rounding, as updates change them and they
 *               are computed from scratch only now and then
 *     totals    the largest of each term, its device, the total
 *
 * If this file is linked, searches run the check on every Nth commit of an
 * assignment (assignment_check_every, 1 in make test-long) and abort if it
 * fails.
 */

/* Returns 0, or -1 and ERR_INPUT. The assignment must have been priced, or
 * committed since. */
int assignment_check(const struct assignment *assignment,
                     struct err *err) MUST_CHECK;

#endif
