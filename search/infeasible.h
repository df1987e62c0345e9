/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_INFEASIBLE_H
#define NEUROSHARD_SEARCH_INFEASIBLE_H

#include "search/fit.h"

/*
 * Explains why there is no plan, and which changes would help. The message says
 * "no plan fits" if there is a proof. A proof uses the bytes that the tables
 * need however they are cut, the smallest allowed piece, the pins, or all
 * placements of the units that may not be cut. Without a proof the message says
 * "no plan was found". The message then suggests changes of which each would be
 * enough: more memory of a device, more devices, or a kind of shard that is not
 * allowed. The suggested numbers are close to the smallest that are enough.
 * Each suggestion has been tested with a quick packing. No suggestion is tested
 * after end_ms on clock_ms() (INFINITY: no limit), so the numbers may then be
 * larger.
 *
 * search_kinds are the kinds of shards that the search makes. Proofs cover all
 * kinds that the tables, the problem and the oracle allow.
 */

/* Called before a search, with `failure` NULL: returns 0, or fails with
 * ERR_NO_PLAN if sums of bytes are enough to prove that there is no plan.
 * Called after a search that found no plan: always fails with ERR_NO_PLAN. */
int infeasible_check(const struct problem *problem, const struct oracle *oracle,
                     unsigned search_kinds, const struct fit_failure *failure,
                     double end_ms, struct err *err) MUST_CHECK;

#endif
