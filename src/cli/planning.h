/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLANNING_H
#define NEUROSHARD_CLI_PLANNING_H

#include "cli/command.h"
#include "emit/compare_table.h"
#include "search/search.h"

/*
 * What plan, compare, cost and their like share: the options that say what is
 * planned for, how a problem and a cost model come of them, how plan searches,
 * and the report of a plan.
 */

#define PLANNING_MAX_GPUS 65536

/* Groups of options. --gpus comes before them: plan takes a range, compare one
 * number. */
extern const struct option_spec cluster_options[], planning_options[],
    job_options[];
/* Of commands that price a plan, with cluster_options and job_options behind
 * them: planning_price reads them. */
extern const struct option_spec pricing_options[];
/* Of commands that load a plan, with the same behind them; commands that plan
 * have options of these names. */
extern const struct option_spec placed_options[];

/* Loads a plan, also one of TorchRec's, whose tables are those of a list: of
 * `list`, or where that is NULL of --tables, and then the other options say
 * what the plan is of, and must have a use where a command has one plan. */
int planning_load(struct plan *plan, const char *path, const char *list,
                  struct cli *cli, struct err *err) MUST_CHECK;

/* What a search is asked for by --seed, --effort, --time-limit, --verbose and
 * --threads, and else search_options_init; the caller closes its pool. An
 * interrupt keeps what the full search has found (interrupt_keep). */
void planning_set_search(struct search_options *options, const struct cli *cli);

/* Reads the table list and fills the problem from the options; of a range of
 * GPUs for the first number. `like` is that of the plan that stands, or all 0:
 * it says how many GPUs a host has, and which pieces are too narrow, where no
 * option does. */
int planning_problem(struct problem *problem, const char *path,
                     const struct problem *like, struct cli *cli,
                     struct err *err) MUST_CHECK;

/* The numbers of GPUs that --gpus asks about, rising; with --cluster 0. Of a
 * range with --gpus-per-host: whole hosts, and below one host any number. */
struct planning_counts {
    uint32_t *n_gpus; /* [n], in the arena */
    size_t n;         /* >= 1 */
};
int planning_counts(struct planning_counts *counts, struct cli *cli,
                    struct err *err) MUST_CHECK;
/* Cluster and batch of the options for one of these numbers, or those of
 * --cluster, which says how many there are; the problem's memory model is set.
 * Hosts are as in the plan that stands where no option says them. */
int planning_set_cluster(struct problem *problem, uint32_t n_gpus,
                         const struct cluster *like, struct cli *cli,
                         struct err *err) MUST_CHECK;

/* Other hosts and another batch, by the options, for a plan that says its own.
 */
int planning_ask_what_if(struct problem *problem, struct cli *cli,
                         struct err *err) MUST_CHECK;

/* The cost model of --cost, else the one of --gpu. */
int planning_oracle(struct oracle **out, struct cli *cli,
                    const struct problem *problem, struct err *err) MUST_CHECK;
/* Prices a plan that is there already, whatever its cuts, by pricing_options:
 * by the model asked for, else the plan's own, else that of the GPU; and sets
 * its bound by search_bound: nothing is proven where the plan, made by hand, is
 * below. Bandwidths that are asked for stay with the plan. */
int planning_price(struct oracle **out, struct cli *cli, struct plan *plan,
                   struct err *err) MUST_CHECK;
/* Puts what job_options say in the problem's job; what they do not say stays.
 */
int planning_set_job(struct problem *problem, struct cli *cli,
                     struct err *err) MUST_CHECK;
/* Puts those of the options in the cluster. */
void planning_set_bandwidths(struct cluster *cluster, const struct cli *cli);

/* --- the report of a plan, and what it is compared to: other planners under
 * the same costs --- */

/* TorchRec's own costs: the oracle's, if they are its, else its defaults. */
int planner_torchrec_costs(struct oracle **out, const struct oracle *oracle,
                           const struct problem *problem, struct arena *arena,
                           struct err *err) MUST_CHECK;
/* What a planner found. */
struct compare_entry planner_entry(const struct rival *rival);

/* --- the search that the options of `plan` choose, for one problem and, over a
 * range of numbers of GPUs, for one after another --- */

struct plan_request {
    struct cli *cli;
    struct problem problem;         /* over a range that of the first number */
    struct plan from;               /* of --from: what stands now */
    struct replan_report replanned; /* of the search from there */
    struct search_trace trace;      /* of --trace; its points are mem_free'd */
    struct rivals rivals;           /* what others find, to be reported */
};

/* Returns the time in ms after the start of the command at which the search has
 * to end, so that the plan of n_tables tables is also written and reported
 * within limit_ms; INFINITY if limit_ms is 0, which is no limit. */
double planning_search_limit_ms(double limit_ms, size_t n_tables);

/* Writes a plan that the oracle has priced to the file of --output, and to
 * standard output its report, or, by --json or for '-', the plan itself. With a
 * request, of `plan`, the report says what rivals find, and of a plan that
 * replaces another both say what moves. */
int plan_answer(const struct plan *plan, const struct oracle *oracle,
                const struct plan_request *request, struct cli *cli,
                struct err *err) MUST_CHECK;

#endif
