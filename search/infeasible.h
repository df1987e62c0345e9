/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_INFEASIBLE_H
#define NEUROSHARD_SEARCH_INFEASIBLE_H

#include "core/oracle.h"
#include "search/fit.h"

/*
 * Why there is no plan, and what would help. "No plan fits" is said where that
 * is proven: of the bytes that the tables take however they are cut, of a piece
 * as small as it may be, of pins, or of every placement of what may not be cut;
 * else "no plan was found". Then comes the least change that would do: memory
 * of a device, number of devices, or a kind that is not allowed; each was tried
 * by packing (search/fit.h, FIT_QUICK).
 *
 * search_kinds are those that the search makes at all; proofs are about all
 * that table, problem and oracle allow.
 */

/* Before a search, where failure is NULL: 0, or ERR_NO_PLAN where sums alone
 * tell. After one that found none: ERR_NO_PLAN. */
int infeasible_check(const struct problem *problem, const struct oracle *oracle,
                     unsigned search_kinds, const struct fit_failure *failure,
                     struct err *err) MUST_CHECK;

#endif
