/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_TORCHREC_JOB_H
#define NEUROSHARD_EMIT_TORCHREC_JOB_H

#include "core/problem.h"

/* The job of a plan in TorchRec's format. */

/* Checks that the plan gives the interval between the syncs of its sharding
 * groups, because TorchRec's pipelines would sync in each step. */
int torchrec_check_groups(const struct problem *problem,
                          struct err *err) MUST_CHECK;
/* Prints the members world_size, local_world_size and, if needed, pod_size and
 * groups, each with a comma. Ranks and hosts are those of the whole job. The
 * ranks in the plan are those of one group, as DMPCollection remaps them. */
void torchrec_print_job(const struct problem *problem, struct buf *out);

#endif
