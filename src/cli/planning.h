/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLANNING_H
#define NEUROSHARD_CLI_PLANNING_H

#include "cli/command.h"
#include "emit/compare_table.h"
#include "search/search.h"

/*
 * Code that plan, compare, cost and similar commands share: the options that
 * describe a planning problem, the construction of problem and cost model from
 * them, and the settings of the search.
 */

/*
 * Tables of options (planning_options.c; cluster_options is in
 * planning_cluster.h). Commands list them in this order:
 *
 *     commands that make plans
 *         batch_options, their own --gpus, cluster_options, problem_options,
 *         job_options, planning_options, their own options of the search,
 *         seed_options
 *     commands that load plans
 *         placed_options, cluster_options, problem_options, and job_options and
 *         pricing_options for planning_price
 *
 * Options of both kinds of commands have the same names. `plan` accepts a range
 * of numbers for --gpus, the other commands a single number.
 */
extern const struct option_spec batch_options[], problem_options[],
    job_options[], planning_options[], seed_options[], placed_options[],
    pricing_options[];

/* Loads a plan of this program or of TorchRec. The tables of a TorchRec plan
 * come from the table list `list`. If list is NULL, they come from --tables,
 * and the placed_options and cluster_options describe the rest of the plan. If
 * a command takes only one plan, an option of these groups that has no effect
 * on the plan is an error. */
int planning_load(struct plan *plan, const char *path, const char *list,
                  struct cli *cli, struct err *err) MUST_CHECK;

/* Sets the search options from --seed, --effort, --time-limit, --verbose and
 * --threads. All other search options keep the values of search_options_init.
 * The caller closes options->pool. */
void planning_set_search(struct search_options *options, const struct cli *cli);
/* Makes an interrupt keep the result of a full search so far (interrupt_keep)
 * if there are at most PLANNING_MOST_KEPT tables. The plan of a longer list
 * takes more than two seconds to write, so an interrupt ends its search without
 * a plan. */
#define PLANNING_MOST_KEPT 50000
void planning_keep_found(struct search_options *options, size_t n_tables);

/* Reads the table list and fills the problem from the options. If --gpus is a
 * range, the problem has the first number of GPUs. `like` is the problem of the
 * current plan, or a zeroed struct. The number of GPUs per host and the least
 * width of a piece come from `like` if no option sets them. */
int planning_problem(struct problem *problem, const char *path,
                     const struct problem *like, struct cli *cli,
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
/* Sets the problem's dense part from --dense, or fits the one that it has to
 * its tables. The tables must be there. */
int planning_set_dense(struct problem *problem, struct cli *cli,
                       struct err *err) MUST_CHECK;

/* Returns the time in ms after the start of the command at which the search has
 * to end, so that a plan of n_tables tables can also be written and reported
 * within limit_ms. Returns INFINITY if limit_ms is 0, which means no limit. */
double planning_search_limit_ms(double limit_ms, size_t n_tables);

#endif
