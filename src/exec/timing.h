/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TIMING_H
#define NEUROSHARD_EXEC_TIMING_H

#include "device/laps.h"
#include "exec/input.h"
#include "exec/rank_work.h"

/*
 * What work takes: medians and deciles of n_iterations after a warm-up.
 * Weights are updated at a tiny rate and not restored.
 */

/* Forward, backward and compute of a rank, and their phases, alone on its
 * device, with a canary until the machine was quiet; health and whether it was
 * disturbed. The works are those of all and of WORK_OTHERS. The
 * iterations go round the work's index sets (lookup_n_cold_sets says why), and
 * on a GPU forward and backward each start with cold caches. The weights of the
 * rank must be loaded. */
int timing_rank(struct exec_rank *rank, struct rank_work *work,
                struct rank_work *others, struct canary *canary,
                unsigned n_iterations, struct err *err) MUST_CHECK;

/* The median of what a rank does with ids before and behind their exchange,
 * which has been done once: of one batch, over and over. */
int timing_ids(double *ms, struct input *input, uint32_t rank,
               unsigned n_iterations, struct err *err) MUST_CHECK;

/*
 * What all ranks do together. Each iteration starts at a barrier and takes as
 * long as the process that is last. Collective.
 */

/* The exchanges of ids, of outputs and of gradients, and the all-reduce of
 * replicated tables, by their phases. Overwrites outputs and gradients. */
int timing_exchanges(struct timing exchanges[N_PHASES],
                     struct exchange_set *set, struct input *input,
                     unsigned n_iterations, struct err *err) MUST_CHECK;

/* Of several processes, each of which is a rank: whole steps of look-ups,
 * exchange, gradients back, all-reduce and update, from the host's call to the
 * end of the device's work. And, where the placement has several chunks,
 * look-ups and their exchange in one part and in chunks, in turns. */
int timing_together(struct timing *step, struct timing in_chunks[2],
                    const struct exchange_set *set, unsigned n_iterations,
                    struct err *err) MUST_CHECK;

#endif
