/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TRAIN_TIMES_H
#define NEUROSHARD_EXEC_TRAIN_TIMES_H

#include "exec/train_step.h"

/* Gathers the times of all steps and ranks, and stores medians and deciles in
 * the result (struct train_result). Collective. */
int train_times_collect(struct train_state *run, struct err *err) MUST_CHECK;

#endif
