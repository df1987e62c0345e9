/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_H
#define NEUROSHARD_EXEC_EXEC_H

#include "device/world.h"
#include "exec/exec_options.h"
#include "exec/exec_result.h"

/*
 * The executor: runs a plan and times it, on any device. Either each rank is a
 * process of a world, or all ranks are in this one process and share one
 * device. The results are the same in both cases, bit for bit.
 *
 * An execution first compares one step with an unsharded double-precision
 * reference. Then it times the work of each rank alone (ranks on CPUs of one
 * host take turns), and the exchanges of all ranks together. So the phases are
 * measured one after the other. The effect of a pipeline is computed from their
 * times (core/step.h). Reported costs are defined as in struct device_cost.
 *
 * If the job has several sharding groups, all of them run the plan. A sync
 * (exec/sync.h) follows the compared step, is compared with the reference, and
 * is timed, unless weights are loaded in turns.
 *
 * The executor supports pooled tables with fp32 or fp16 weights, SGD or
 * row-wise Adagrad, outputs exchanged in fp32 or fp16, and pieces of every
 * kind. A table with num_outputs F has F bags per sample, and pooling_factor /
 * F lookups per bag. Indices follow the table's skew over its scaled number of
 * rows.
 */

/*
 * Executes a plan, which must have passed plan_check. Collective over the
 * world. Every process gets the whole result. Only process 0 adds samples to
 * its sink.
 *
 * Errors:
 *   ERR_USAGE   the world has several processes, but not one for each rank
 *   ERR_INPUT   the plan cannot be executed, for example because a width is not
 *               a multiple of 4
 *   ERR_DEVICE  the device's memory is too small even for one rank at a time;
 *               the message names a --scale-rows that fits
 *
 * If one of several processes fails, other processes may still wait for it, so
 * nothing is released. The caller can then only call world_abort. A result that
 * differs from the reference is not an error. `failure` describes the
 * difference.
 */
int exec_run(struct exec_result *result, const struct plan *plan,
             struct world *world, struct device *device,
             const struct exec_options *options, struct arena *arena,
             struct err *err) MUST_CHECK;

#endif
