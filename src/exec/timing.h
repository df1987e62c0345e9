/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TIMING_H
#define NEUROSHARD_EXEC_TIMING_H

#include "device/repetitions.h"
#include "exec/input.h"
#include "exec/rank_work.h"

/*
 * Timing of an execution's work: medians and deciles of n_iterations after a
 * warm-up. The timed updates use a tiny learning rate and are not undone.
 */

/* Times forward, backward, compute and phases of a rank that runs alone on its
 * device. Repeats the timing until the interference probe finds the machine
 * quiet. Also stores the device's health and whether it was disturbed. `work`
 * must be opened as WORK_ALL, `others` as WORK_OTHERS. The iterations cycle
 * through the work's index sets (lookup_n_cold_sets explains why). On a GPU
 * forward and backward each start with cold caches. The weights of the rank
 * must be loaded. */
int timing_rank(struct exec_rank *rank, struct rank_work *work,
                struct rank_work *others,
                struct interference_probe *interference, unsigned n_iterations,
                struct err *err) MUST_CHECK;

/* Stores the median time of a rank's work on ids before and after their
 * exchange. The ids have been exchanged once; the work is repeated on this one
 * batch. */
int timing_ids(double *ms, struct input *input, uint32_t rank,
               unsigned n_iterations, struct err *err) MUST_CHECK;

/*
 * Timing of work that all ranks do together. Each iteration starts at a barrier
 * and takes as long as the slowest process. Collective.
 */

/* Times the exchanges of ids, of outputs and of gradients, and the all-reduce
 * of replicated tables, indexed by phase. Overwrites outputs and gradients. */
int timing_exchanges(struct timing exchanges[N_PHASES],
                     struct exchange_set *set, struct input *input,
                     unsigned n_iterations, struct err *err) MUST_CHECK;

/* Times whole steps of several processes, each of which is one rank: lookups,
 * exchange of outputs, exchange of gradients, all-reduce and update, from the
 * host's call to the end of the device's work. If the placement has several
 * chunks, also times lookups and their exchange, alternately in one part and in
 * chunks. */
int timing_together(struct timing *step, struct timing in_chunks[2],
                    const struct exchange_set *set, unsigned n_iterations,
                    struct err *err) MUST_CHECK;

#endif
