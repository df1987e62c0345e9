/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_RANK_TIMING_H
#define NEUROSHARD_EXEC_RANK_TIMING_H

#include "core/sample.h"
#include "exec/rank_work.h"

/*
 * What a rank's work takes, alone on its device. The iterations go round the
 * work's index sets (lookup_n_cold_sets says why), and on a GPU forward and
 * backward each start with cold caches. Weights are updated at a tiny rate and
 * not restored.
 */
#define TIMING_LEARNING_RATE 1e-7F

struct rank_times {
    /* of one iteration: backward holds all updates, compute is both */
    struct timing forward, backward, compute;
};

/* Medians and deciles of n_iterations after a warm-up. The weights of the
 * rank must be loaded. */
int rank_timing(struct rank_times *times, struct rank_work *work,
                unsigned n_iterations, struct err *err) MUST_CHECK;

/* Median and deciles; ms[n] is sorted. */
struct timing rank_timing_of(double *ms, unsigned n);

#endif
