/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_TASKS_H
#define NEUROSHARD_MICROBENCH_TASKS_H

#include "base/rng.h"
#include "core/problem.h"

/*
 * Draws a task of the published benchmark for planners (NeuroShard, section
 * 4.1). It has 10 to 59 tables, which are drawn with replacement from the
 * tables of the pool. Each table gets 4, 8 ... or 128 columns. If the weights
 * of the task take more than 15/16 of the usable memory (15 GiB on 4 GPUs with
 * 4 GiB each), the task is drawn again. All other values are the pool's. The
 * task lies in the arena. ERR_USAGE if no task within the limit is found.
 */
int task_draw(struct problem *task, const struct problem *pool, struct rng *rng,
              struct arena *arena, struct err *err) MUST_CHECK;

#endif
