/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLANNING_H
#define NEUROSHARD_CLI_PLANNING_H

#include "cli/command.h"
#include "emit/compare_table.h"
#include "search/search.h"

/*
 * Code that plan, compare, cost and similar commands share: the options that
 * describe a planning problem, the construction of problem and cost model from
 * them, the settings of the search, and the report of a plan.
 */

#define PLANNING_MAX_GPUS 65536

/* Groups of options. --gpus comes before them and is not part of them: plan
 * takes a range, compare a single number. */
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
 * and the placed_options and cluster_options describe the rest of the plan. In
 * a command that takes one plan such an option is an error if it has no use for
 * this plan. */
int planning_load(struct plan *plan, const char *path, const char *list,
                  struct cli *cli, struct err *err) MUST_CHECK;

/* Sets the search options from --seed, --effort, --time-limit, --verbose and
 * --threads; the others are those of search_options_init. The caller closes
 * options->pool. An interrupt keeps the result of a full search so far
 * (interrupt_keep). */
void planning_set_search(struct search_options *options, const struct cli *cli);

/* Reads the table list and fills the problem from the options; for a range of
 * GPUs, with the first number. `like` is the problem of the current plan, or
 * all 0. If no option sets them, it gives the number of GPUs per host and the
 * width below which pieces are too narrow. */
int planning_problem(struct problem *problem, const char *path,
                     const struct problem *like, struct cli *cli,
                     struct err *err) MUST_CHECK;

/* Numbers of GPUs that --gpus asks for, in rising order; with --cluster the
 * single number 0. A range with --gpus-per-host contains only whole hosts, and
 * below one host any number. */
struct planning_counts {
    uint32_t *n_gpus; /* [n], in the arena */
    size_t n;         /* at least 1 */
};
int planning_counts(struct planning_counts *counts, struct cli *cli,
                    struct err *err) MUST_CHECK;
/* Sets cluster and batch from the options for one of these numbers, or from the
 * file of --cluster, which gives its own number of GPUs. The problem's memory
 * model must be set. If no option gives the hosts, they are those of `like`,
 * the cluster of the current plan. */
int planning_set_cluster(struct problem *problem, uint32_t n_gpus,
                         const struct cluster *like, struct cli *cli,
                         struct err *err) MUST_CHECK;

/* Changes hosts and batch of a loaded plan by the options, for a what-if. */
int planning_ask_what_if(struct problem *problem, struct cli *cli,
                         struct err *err) MUST_CHECK;

/* Opens the cost model of --cost, or else that of --gpu. */
int planning_oracle(struct oracle **out, struct cli *cli,
                    const struct problem *problem, struct err *err) MUST_CHECK;
/* Prices an existing plan, whatever its cuts, by the pricing_options. The cost
 * model is the requested one, else the plan's own, else that of the GPU. Also
 * sets the plan's bound by search_bound; if a plan made by hand costs less, it
 * gets no bound. Requested bandwidths stay with the plan. */
int planning_price(struct oracle **out, struct cli *cli, struct plan *plan,
                   struct err *err) MUST_CHECK;
/* Sets the problem's job from the job_options. Values that no option sets
 * stay. */
int planning_set_job(struct problem *problem, struct cli *cli,
                     struct err *err) MUST_CHECK;
/* Sets the cluster's bandwidths from the options, if given. */
void planning_set_bandwidths(struct cluster *cluster, const struct cli *cli);

/* --- the report of a plan; other planners under the same costs --- */

/* Opens TorchRec's own costs: the oracle's model if it is one of TorchRec, or
 * else TorchRec's defaults. */
int planner_torchrec_costs(struct oracle **out, const struct oracle *oracle,
                           const struct problem *problem, struct arena *arena,
                           struct err *err) MUST_CHECK;
/* Returns the result of a planner as an entry for comparisons. */
struct compare_entry planner_entry(const struct rival *rival);

/* --- the search of `plan`, for one or several numbers of GPUs --- */

struct plan_request {
    struct cli *cli;
    /* Over a range of GPUs: the problem of the first number. */
    struct problem problem;
    struct plan from;               /* current plan, of --from */
    struct replan_report replanned; /* result of re-planning */
    /* trace for --trace; free its points with mem_free */
    struct search_trace trace;
    /* results of other planners, for the report */
    struct rivals rivals;
};

/* Returns the time in ms after the start of the command at which the search has
 * to end, so that the plan of n_tables tables is also written and reported
 * within limit_ms; INFINITY if limit_ms is 0, which is no limit. */
double planning_search_limit_ms(double limit_ms, size_t n_tables);

/* Writes a plan that the oracle has priced to the file of --output. Prints on
 * standard output its report or, with --json or if the file is '-', the plan
 * itself. `request` is that of `plan`, or NULL in other commands. With a
 * request the report contains the rivals; if the plan replaces another one,
 * both report and plan contain the moves. */
int plan_answer(const struct plan *plan, const struct oracle *oracle,
                const struct plan_request *request, struct cli *cli,
                struct err *err) MUST_CHECK;

#endif
