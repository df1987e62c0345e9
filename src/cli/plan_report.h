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
/* Fills an entry by what a planner finds. That it finds no plan, or cannot plan
 * such tables, is its reason, in the arena; fails of anything else. */
int planner_try(struct compare_entry *entry, const struct contender *planner,
                const struct problem *problem,
                const struct contender_inputs *inputs, struct arena *arena,
                struct err *err) MUST_CHECK;

/* Sets the bound of a plan that the oracle has priced by search_bound; nothing
 * is proven where the plan, made by hand, is below. */
void plan_bound(struct plan *plan, const struct oracle *oracle,
                struct arena *arena);
/* Appends the report of a plan that the oracle has priced; with rivals beside
 * TorchRec's planner and the best of the greedy ones, HugeCTR's among them
 * where that is quick. */
void plan_report(const struct plan *plan, const struct oracle *oracle,
                 bool with_rivals, const struct cli *cli);

#endif
