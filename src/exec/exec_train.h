/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_TRAIN_H
#define NEUROSHARD_EXEC_EXEC_TRAIN_H

#include "device/world.h"
#include "exec/train_result.h"

/*
 * Training of the whole model by a plan: tables and dense part, for several
 * steps. In each step
 *
 *   1. ids are exchanged, and looked up where they arrived
 *   2. the outputs are exchanged, and joined to the input of the dense part
 *   3. the dense part runs forward and backward; the loss is the mean over the
 *      global batch
 *   4. the gradients of the outputs are exchanged, and those of the dense
 *      part and of replicas are added up over all ranks
 *   5. tables and dense parameters are updated
 *
 * If the job has several sharding groups, 1, 2 and the first half of 4 happen
 * inside each group. A table learns from the mean loss of the samples of its
 * group; replicas and the dense part learn from the mean loss of all samples,
 * as in TorchRec. After each sync_every steps, a sync averages the copies of
 * the tables (exec/sync.h).
 *
 * PIPELINE_NONE runs these parts one after the other. PIPELINE_SDD runs the
 * input of the next step in a second thread, which exchanges ids in a second
 * world during the dense part. As in TorchRec, the ids leave after the outputs,
 * and the gradients wait for them. The weights of all ranks must fit into
 * memory together. Weights, ids, features and labels are drawn from the seed.
 *
 * The result does not depend on the pipeline or the number of processes: all
 * weights have the same bits. It depends on the number of ranks, because each
 * rank first adds up its own samples. It also depends on the library of matrix
 * products: OpenBLAS rounds differently on other instruction sets, and cuBLAS
 * on other GPUs.
 */

/*
 * Trains. The plan must have passed plan_check. Collective over the world;
 * every process gets the whole result.
 *
 * Errors:
 *   ERR_USAGE   the world has several processes, but not one for each rank
 *   ERR_INPUT   the plan or its dense part cannot be executed; the message
 *               names the property
 *   ERR_DEVICE  the weights of all ranks do not fit into memory together
 *
 * After an interrupt it fails with ERR_INTERRUPTED. If one of several processes
 * fails, the caller can only call world_abort, as after exec_run. A difference
 * from the reference is not an error.
 */
int exec_train(struct train_result *result, const struct plan *plan,
               struct world *world, struct device *device,
               const struct exec_train_options *options, struct arena *arena,
               struct err *err) MUST_CHECK;

#endif
