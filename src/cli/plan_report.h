/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLAN_REPORT_H
#define NEUROSHARD_CLI_PLAN_REPORT_H

#include "cli/command.h"
#include "emit/compare_table.h"
#include "emit/emit.h"
#include "search/search.h"

/* The report of a plan, with what it is compared to: other planners under the
 * same costs. */

/* TorchRec's own costs: the oracle's, if they are its, else its defaults. */
int planner_torchrec_costs(struct oracle **out, const struct oracle *oracle,
                           const struct problem *problem, struct arena *arena,
                           struct err *err) MUST_CHECK;
/* What a planner found. */
struct compare_entry planner_entry(const struct rival *rival);

/* Sets the bound of a plan that the oracle has priced by search_bound; nothing
 * is proven where the plan, made by hand, is below. */
void plan_bound(struct plan *plan, const struct oracle *oracle,
                struct arena *arena);
/* Whether standard output gets the plan itself, by --json or as --output, and
 * no report. */
bool plan_is_printed(const struct cli *cli);
/* Appends the report of a plan that the oracle has priced; with rivals, which
 * may be NULL, beside TorchRec's planner and the best of the greedy ones. */
void plan_report(const struct plan *plan, const struct oracle *oracle,
                 const struct rivals *rivals, const struct cli *cli);

#endif
