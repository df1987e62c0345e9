/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLANNING_H
#define NEUROSHARD_CLI_PLANNING_H

#include "cli/command.h"
#include "core/cluster.h"
#include "emit/compare_table.h"
#include "search/planners.h"

/*
 * Code that plan, compare, cost and similar commands share: the options that
 * describe a planning problem, the construction of problem and cost model from
 * them, the settings of the search, and the report of a plan.
 */

#define PLANNING_MAX_GPUS 65536

/* Groups of options. --gpus is not in any group, because `plan` accepts a range
 * of numbers and `compare` a single number. --gpus is listed before these
 * groups. */
extern const struct option_spec cluster_options[], planning_options[],
    job_options[];
/* Options of commands that price a plan, for planning_price. These commands
 * also have cluster_options and job_options, listed after them. */
extern const struct option_spec pricing_options[];
/* Options of commands that load a plan; cluster_options and job_options are
 * listed after them. Planning commands have options of the same names. */
extern const struct option_spec placed_options[];

/* Loads a plan of this program or of TorchRec. The tables of a TorchRec plan
 * come from the table list `list`. If list is NULL, they come from --tables,
 * and the placed_options and cluster_options describe the rest of the plan. If
 * a command takes only one plan, an option of these groups that has no effect
 * on the plan is an error. */
int planning_load(struct plan *plan, const char *path, const char *list,
                  struct cli *cli, struct err *err) MUST_CHECK;

/* Sets the search options from --seed, --effort, --time-limit, --verbose and
 * --threads. All other search options keep the values of search_options_init.
 * The caller closes options->pool. An interrupt keeps the result of a full
 * search so far (interrupt_keep). */
void planning_set_search(struct search_options *options, const struct cli *cli);

/* Reads the table list and fills the problem from the options. If --gpus is a
 * range, the problem has the first number of GPUs. `like` is the problem of the
 * current plan, or a zeroed struct. The number of GPUs per host and the least
 * width of a piece come from `like` if no option sets them. */
int planning_problem(struct problem *problem, const char *path,
                     const struct problem *like, struct cli *cli,
                     struct err *err) MUST_CHECK;

/* Numbers of GPUs that --gpus asks for, in rising order; with --cluster there
 * is the single number 0. If --gpus-per-host is given, the numbers in a range
 * are multiples of the GPUs per host, and all numbers of the range below one
 * host. */
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

/* Opens the cost model that --cost names. Without --cost, opens the cost model
 * of the GPU that --gpu names. */
int planning_oracle(struct oracle **out, struct cli *cli,
                    const struct problem *problem, struct err *err) MUST_CHECK;
/* Prices an existing plan, whatever its cuts, by the pricing_options. The cost
 * model is the first of these that exists: the model that the options request,
 * the plan's own model, the model of the GPU. Also sets the plan's bound by
 * search_bound; a plan made by hand that costs less than the bound gets no
 * bound. Bandwidths that the options request are stored in the plan. */
int planning_price(struct oracle **out, struct cli *cli, struct plan *plan,
                   struct err *err) MUST_CHECK;
/* Sets the problem's job from the job_options. Values that no option sets are
 * kept. */
int planning_set_job(struct problem *problem, struct cli *cli,
                     struct err *err) MUST_CHECK;
/* Sets the cluster's bandwidths from the options, if given. */
void planning_set_bandwidths(struct cluster *cluster, const struct cli *cli);

/* --- the report of a plan; other planners under the same costs --- */

/* Opens TorchRec's own costs: the oracle's model if it is TorchRec's cost
 * model, or else TorchRec's default cost model. */
int planner_torchrec_costs(struct oracle **out, const struct oracle *oracle,
                           const struct problem *problem, struct arena *arena,
                           struct err *err) MUST_CHECK;
/* Returns the result of another planner as an entry of a comparison. */
struct compare_entry planner_entry(const struct rival *rival);

/* --- the search of `plan`, for one or several numbers of GPUs --- */

struct plan_request {
    struct cli *cli;
    /* Problem to plan for. If --gpus is a range, the problem of the first
     * number of GPUs. */
    struct problem problem;
    struct plan from; /* current plan, read from the file of --from */
    struct replan_report replanned; /* result of re-planning */
    /* trace of the search for --trace; free its points with mem_free */
    struct search_trace trace;
    /* results of other planners, for the report */
    struct rivals rivals;
};

/* Returns the time in ms after the start of the command at which the search has
 * to end, so that a plan of n_tables tables can also be written and reported
 * within limit_ms. Returns INFINITY if limit_ms is 0, which means no limit. */
double planning_search_limit_ms(double limit_ms, size_t n_tables);

/* Writes a plan that the oracle has priced to the file of --output. Prints the
 * report of the plan on standard output; with --json, or if the file of
 * --output is '-', prints the plan itself instead. `request` is the request of
 * the `plan` command, or NULL in other commands. If there is a request, the
 * report compares the plan with the results of other planners. If the plan
 * replaces another plan, the moves are in the report and in the plan. */
int plan_answer(const struct plan *plan, const struct oracle *oracle,
                const struct plan_request *request, struct cli *cli,
                struct err *err) MUST_CHECK;

#endif
