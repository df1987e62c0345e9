/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLAN_REPORT_H
#define NEUROSHARD_CLI_PLAN_REPORT_H

#include "cli/command.h"
#include "emit/compare_table.h"
#include "search/advice.h"
#include "search/planners.h"

/*
 * The answer of a command with a plan: the report, which compares the plan with
 * other planners under the same costs, and the plan itself.
 */

/* Opens TorchRec's own costs: the oracle's model if it is TorchRec's cost
 * model, or else TorchRec's default cost model. */
int planner_torchrec_costs(struct oracle **out, const struct oracle *oracle,
                           const struct problem *problem, struct arena *arena,
                           struct err *err) MUST_CHECK;
/* Returns the result of another planner as an entry of a comparison. */
struct compare_entry planner_entry(const struct rival *rival);

/* Totals in ms of the cheapest plans found with and without the rules of the
 * target. Both are 0 if they were not compared. */
struct target_price {
    double own_ms, any_ms;
};

/* A request of the command `plan`, and the findings of its search. */
struct plan_request {
    struct cli *cli;
    /* Problem to plan for. If --gpus is a range, the problem of the first
     * number of GPUs. */
    struct problem problem;
    struct plan from; /* current plan, read from the file of --from */
    /* subject of the search for the line of progress, such as "8 x a100"; NULL:
     * only one plan is searched */
    const char *progress;
    struct replan_report replanned; /* result of re-planning */
    /* trace of the search for --trace; free its points with mem_free */
    struct search_trace trace;
    struct advice advice; /* alternatives of the plan, for the report */
    /* results of other planners, for the report */
    struct rivals rivals;
    /* numbers of groups that were tried, as a JSON list, or NULL; not owned */
    json_t *groups_tried;
    struct target_price price; /* cost of the target's rules, for the report */
};

/* Option of the commands that print a plan. */
#define DETAILS_OPTION                                                       \
    {                                                                        \
        "details", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,                   \
            "print the whole report: phases, memory and the most expensive " \
            "tables, with all sources"                                       \
    }

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
