/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_TASKS_H
#define NEUROSHARD_MICROBENCH_TASKS_H

#include "base/rng.h"
#include "core/problem.h"

/* The published benchmark of planners (NeuroShard, section 4.1): 10 to 59
 * tables of the pool's, with replacement, each of 4, 8 ... or 128 columns;
 * drawn again while the weights take more than 15 GiB of 4 GPUs with 4 GiB
 * each. All else is the pool's; in the arena. ERR_USAGE where no such task is
 * found. */
int task_draw(struct problem *task, const struct problem *pool, struct rng *rng,
              struct arena *arena, struct err *err) MUST_CHECK;

#endif
