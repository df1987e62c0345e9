/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TRAIN_TIMES_H
#define NEUROSHARD_EXEC_TRAIN_TIMES_H

#include "exec/train_step.h"

/* Fills phases_ms with the times of the phases of one step, as struct
 * train_result defines them, from times[n_ranks]. With a pipeline, the input
 * ran at the same time as other phases. */
void train_times_of_step(const struct step_times *times, uint32_t n_ranks,
                         bool is_pipelined, double phases_ms[N_TRAIN_PHASES]);
/* Gathers the times of all steps and ranks, and stores medians and deciles in
 * the result (struct train_result). Fails as world_all_gather does.
 * Collective. */
int train_times_collect(struct train_state *run, struct err *err) MUST_CHECK;

#endif
