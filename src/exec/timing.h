/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TIMING_H
#define NEUROSHARD_EXEC_TIMING_H

#include "device/repetitions.h"
#include "exec/exec_result.h"
#include "exec/input.h"
#include "exec/rank_work.h"

/*
 * Timing of the work of an execution. Results are medians and deciles over
 * n_iterations iterations after a warm-up. Timed updates use a tiny learning
 * rate, and they are not undone.
 */

/*
 * Times forward, backward, compute and phases of a rank that runs alone on its
 * device. Repeats the timing until the interference probe finds the machine
 * quiet. Also stores the device's health and whether it was disturbed.
 *
 * `work` must be opened as WORK_ALL, and `others` as WORK_OTHERS. If the rank
 * has caches, they are warmed first (rank_work_warm), each iteration uses a new
 * batch, and the counts of the caches cover all iterations. Otherwise the
 * iterations cycle through the index sets of the work (lookup_n_cold_sets
 * explains why). On a GPU, forward and backward each start with cold caches.
 * The weights of the rank must be loaded.
 */
int timing_rank(struct exec_rank *rank, struct rank_work *work,
                struct rank_work *others,
                struct interference_probe *interference, unsigned n_iterations,
                struct err *err) MUST_CHECK;

/* Stores the median times of a rank's work on ids: the work before the exchange
 * of ids, and the work after it. The ids of one batch have been exchanged once,
 * and both kinds of work are repeated on this batch. */
int timing_ids(double *ms, struct input *input, uint32_t rank,
               unsigned n_iterations, struct err *err) MUST_CHECK;

/*
 * Timing of work that all ranks do together. Each iteration starts at a
 * barrier, and its time is the time of the slowest process. Collective.
 */

/* Times the exchanges of ids, of outputs and of gradients, and the all-reduce
 * of replicated tables. `exchanges` is indexed by phase. Overwrites outputs and
 * gradients of the ranks. */
int timing_exchanges(struct timing exchanges[N_PHASES],
                     struct exchange_set *set, struct input *input,
                     unsigned n_iterations, struct err *err) MUST_CHECK;

/*
 * Times whole steps of several processes, each of which is one rank. A step
 * consists of lookups, exchange of outputs, exchange of gradients, all-reduce
 * and update. It lasts from the host's call to the end of the device's work.
 *
 * If the placement has several chunks, also times lookups and their exchange.
 * They run alternately in one part and in chunks.
 */
int timing_together(struct timing *step, struct timing in_chunks[2],
                    const struct exchange_set *set, unsigned n_iterations,
                    struct err *err) MUST_CHECK;

#endif
