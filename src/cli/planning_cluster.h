/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLANNING_CLUSTER_H
#define NEUROSHARD_CLI_PLANNING_CLUSTER_H

#include "cli/command.h"
#include "core/cluster.h"
#include "core/problem.h"
#include "costmodel/formulas/gpu_spec.h"

/* Options of the cluster, and the cluster of a planning problem. */

#define PLANNING_MAX_GPUS 65536

/* Options of the cluster (cli/planning.h). */
extern const struct option_spec cluster_options[];

/* GPUs to plan for: a GPU of --gpu, or NULL if the option is not given, and how
 * many. With --cluster the number is 0. */
struct planning_cell {
    const char *gpu;
    uint32_t n_gpus;
};
/* All GPUs of --gpu, in order, each with all numbers of GPUs of --gpus, in
 * rising order. The numbers of a range are multiples of the GPUs per host, and
 * all numbers of the range below one host. If --gpus-per-host is not given, a
 * GPU is taken to be sold in hosts of one size (struct gpu_spec). Numbers that
 * are listed one by one are all kept. */
struct planning_grid {
    struct planning_cell *cells; /* [n], in the arena */
    size_t n;                    /* at least 1 */
};
int planning_grid(struct planning_grid *grid, const struct cluster *like,
                  struct cli *cli, struct err *err) MUST_CHECK;
/* Returns the names that --gpu lists, as the user wrote them. The list ends
 * with NULL and is empty if the option is not given. */
const char *const *planning_asked_gpus(struct cli *cli) NEVER_NULL;
/* Chooses the GPU of the cluster: the one that the cluster names already (by
 * the file of --cluster), else `asked`, which is one of --gpu or NULL, else
 * that of --gpu, which must be one, else that of --cost, else `of_plan`, the
 * GPU of the current plan (NULL: unknown), else the default of
 * --gpu. Sets cluster->gpu and is_default_gpu. */
int planning_choose_gpu(const struct gpu_spec **gpu, struct cluster *cluster,
                        const char *asked, const char *of_plan, struct cli *cli,
                        struct err *err) MUST_CHECK;
/* Returns the memory of a host that `--tiers auto` gives to tables, from the
 * file of the GPU. Fails with ERR_USAGE if the file does not tell it. */
int planning_auto_host(uint64_t *bytes, const char *gpu, struct cli *cli,
                       struct err *err) MUST_CHECK;
/* Sets the memory of hosts for tables from --tiers. The cluster, the tables and
 * the target of the problem must be set before. Without the option, a table
 * that may not be in the memory of GPUs is refused. */
int planning_set_tiers(struct problem *problem, struct cli *cli,
                       struct err *err) MUST_CHECK;
/* Sets the cluster and the batch of the problem from the options, for the GPUs
 * of the cell. If --cluster is given, the cluster comes from its file, and so
 * does the number of GPUs. The problem's memory model must be set before. If no
 * option gives the GPU or the hosts, they are taken from `like`, the cluster of
 * the current plan; it may be zeroed. */
int planning_set_cluster(struct problem *problem,
                         const struct planning_cell *cell,
                         const struct cluster *like, struct cli *cli,
                         struct err *err) MUST_CHECK;

/* Sets the GPU of a loaded plan that does not name it to that of its cost
 * model, if this is known. Plans up to version 0.2.0 do not name it. `cost` is
 * the name of the cost model, or NULL. */
void planning_know_gpu(struct cluster *cluster, const char *cost,
                       struct arena *arena);
/* Changes the GPU of a loaded plan to that of --gpu or --cost. Warns if --cost
 * names another GPU than the plan does. A plan without a GPU gets the
 * default. */
int planning_ask_gpu(struct cluster *cluster, struct cli *cli,
                     struct err *err) MUST_CHECK;
/* Changes the hosts, the reserve and the batch of a loaded plan to the values
 * of the options, to answer a what-if question (core/settings.h). */
int planning_ask_what_if(struct problem *problem, struct cli *cli,
                         struct err *err) MUST_CHECK;
/* Sets the cluster's bandwidths from the options, if given. */
void planning_set_bandwidths(struct cluster *cluster, const struct cli *cli);

#endif
