/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLANNING_CLUSTER_H
#define NEUROSHARD_CLI_PLANNING_CLUSTER_H

#include "cli/command.h"
#include "core/cluster.h"
#include "core/problem.h"

/* Options of the cluster, and the cluster of a planning problem. */

#define PLANNING_MAX_GPUS 65536

/* Options of the cluster (cli/planning.h). */
extern const struct option_spec cluster_options[];

/* Numbers of GPUs that --gpus asks for, in rising order; with --cluster there
 * is the single number 0. The numbers of a range are multiples of the GPUs per
 * host, and all numbers of the range below one host. If --gpus-per-host is not
 * given, the GPU is taken to be sold in hosts of one size (struct gpu_spec).
 * Numbers that are listed one by one are all kept. */
struct planning_counts {
    uint32_t *n_gpus; /* [n], in the arena */
    size_t n;         /* at least 1 */
};
int planning_counts(struct planning_counts *counts, struct cli *cli,
                    struct err *err) MUST_CHECK;
/* Sets the cluster and the batch of the problem from the options, for n_gpus
 * GPUs. If --cluster is given, the cluster comes from its file, and so does the
 * number of GPUs. The problem's memory model must be set before. If no option
 * gives the hosts, they are taken from `like`, the cluster of the current
 * plan. */
int planning_set_cluster(struct problem *problem, uint32_t n_gpus,
                         const struct cluster *like, struct cli *cli,
                         struct err *err) MUST_CHECK;

/* Changes the hosts and the batch of a loaded plan to the values of the
 * options, to answer a what-if question. */
int planning_ask_what_if(struct problem *problem, struct cli *cli,
                         struct err *err) MUST_CHECK;
/* Sets the cluster's bandwidths from the options, if given. */
void planning_set_bandwidths(struct cluster *cluster, const struct cli *cli);

#endif
