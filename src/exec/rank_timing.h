/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_RANK_TIMING_H
#define NEUROSHARD_EXEC_RANK_TIMING_H

#include "core/sample.h"
#include "exec/exchange.h"
#include "exec/rank_work.h"

/*
 * Times after a warm-up: medians and deciles of n_iterations. The iterations
 * go round the work's index sets (lookup_n_cold_sets says why). Weights are
 * updated at a tiny rate and not restored.
 */

/* Forward alone, backward with update alone, and both, of one rank. */
int rank_timing_compute(struct timing *forward, struct timing *backward,
                        struct timing *compute, struct rank_work *work,
                        unsigned n_iterations, struct err *err) MUST_CHECK;

/* The forward exchange of all ranks, and the backward one with the all-reduce
 * of replicated tables. Overwrites outputs and gradients. */
int rank_timing_exchange(struct timing *forward, struct timing *backward,
                         const struct exchange_set *set, unsigned n_iterations,
                         struct err *err) MUST_CHECK;

#endif
