/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_JOINT_TIMING_H
#define NEUROSHARD_EXEC_JOINT_TIMING_H

#include "core/sample.h"
#include "exec/exchange.h"

/*
 * What all ranks do together. Each iteration starts at a barrier and takes as
 * long as the process that is last. Collective.
 */

/* The forward exchange, and the backward one with the all-reduce of
 * replicated tables. Overwrites outputs and gradients. */
int joint_timing_exchange(struct timing *forward, struct timing *backward,
                          const struct exchange_set *set, unsigned n_iterations,
                          struct err *err) MUST_CHECK;

/* Whole steps: look-ups, exchange, gradients back, all-reduce, update; from
 * the host's call to the end of the device's work. All weights must be loaded,
 * in one turn. Weights are updated at a tiny rate. */
int joint_timing_step(struct timing *step, const struct exchange_set *set,
                      unsigned first_number, unsigned n_iterations,
                      struct err *err) MUST_CHECK;

#endif
