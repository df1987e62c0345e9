/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_SHARDING_GROUPS_H
#define NEUROSHARD_CORE_SHARDING_GROUPS_H

#include "core/plan.h"

/*
 * Sharding groups: TorchRec's 2D parallelism (DMPCollection).
 *
 * The R GPUs of a job form G sharding groups of R / G GPUs. Each group holds a
 * copy of all tables and trains it with its share of the batch. Now and then a
 * sync averages the copies. All groups have the same plan, so a plan describes
 * one group: the cluster of its problem is that of a group, and its batch is
 * B / G samples. The struct sharding_groups (core/problem.h) describes the
 * rest of the job. Replicas and the dense part are reduced over all R GPUs in
 * each step.
 *
 * GPU r of group g has this rank in the job:
 *
 *     contiguous  g x R / G + r    (use_inter_host_allreduce of DMPCollection)
 *     strided     r x G + g
 *
 * The GPUs with one r in all groups hold the same shards. They are a replica
 * group, and a sync is an all-reduce inside each replica group.
 */

/* Derives the problem of one group from the problem of the whole job, which has
 * one group. Keeps the whole job if count is 1. New arrays are in the arena. If
 * the memory of the GPUs differs, GPU r of the group has the memory of the
 * tightest GPU r of all groups. Fails with ERR_USAGE if count does not divide
 * the GPUs or the batch, if a group would hold parts of hosts or domains, if
 * the groups cannot be trained (sharding_groups_check), or if a table is pinned
 * to a GPU that a group does not have. */
int sharding_groups_derive(struct problem *group, const struct problem *whole,
                           uint32_t count, enum groups_layout layout,
                           struct arena *arena, struct err *err) MUST_CHECK;
/* Returns true if groups of this number and layout fill whole hosts and
 * domains of the cluster, or whole parts of them. */
bool sharding_groups_fit(const struct cluster *whole, uint32_t count,
                         enum groups_layout layout);
/* Checks that TorchRec can train the tables in groups. DMPCollection averages
 * the weights and the state `sum` of the optimizer, so SGD, Adagrad and
 * row-wise Adagrad are trained correctly, and int8 weights cannot be averaged.
 * Other tables fail with ERR_INPUT, and the message names the table. */
int sharding_groups_check(const struct problem *problem,
                          struct err *err) MUST_CHECK;
/* Checks a problem with several groups, such as one that was read from a file:
 * the shape of the groups, the hosts of a group, and the tables. Fails with
 * ERR_INPUT. */
int sharding_groups_judge(const struct problem *problem,
                          struct err *err) MUST_CHECK;

/* Returns the cluster of the whole job. Its arrays are those of one group. */
struct cluster sharding_groups_cluster(const struct problem *problem);
/* Returns the rank in the job of a GPU of a group. */
uint32_t sharding_groups_rank(const struct problem *problem, uint32_t group,
                              uint32_t device);
/* Two functions for lists of all GPUs of the job, group by group: GPU r of
 * group g of n GPUs is at place g x n + r. They return the rank in the job of a
 * place, and the place of a rank. */
uint32_t sharding_groups_rank_at(const struct problem *problem, uint32_t place);
uint32_t sharding_groups_place(const struct problem *problem, uint32_t rank);
/* Returns the bytes of NCCL's buffers on each GPU: for the exchanges of a
 * group, and for the syncs of a replica group. */
uint64_t sharding_groups_nccl_bytes(const struct problem *problem);
/* Returns the number of groups that have GPUs in one host, >= 1. */
uint32_t sharding_groups_per_host(const struct problem *problem);
/* Returns the number of GPUs of a replica group that are in one host or NVLink
 * domain, >= 1. */
uint32_t sharding_groups_replicas_near(const struct problem *problem);
/* Returns the bytes of a shard that a sync averages: its weights and the state
 * of its optimizer. 0 for replicas, which are reduced in each step. */
double shard_sync_bytes(const struct problem *problem,
                        const struct shard *shard);
/* Returns the bytes that a sync averages on the device with most of them. */
double plan_sync_bytes(const struct plan *plan);

/* Folds a plan for all GPUs of a job into a plan of one group, which is a
 * contiguous range of GPUs: device r of the group gets the pieces of devices r,
 * r + R / G, r + 2 R / G ... Row cuts over all GPUs become row cuts over the
 * group. `group` is the problem of the group. The plan has no costs, may exceed
 * the memory, and lives in the arena. */
void sharding_groups_fold(struct plan *out, const struct plan *plan,
                          const struct problem *group, struct arena *arena);

#endif
