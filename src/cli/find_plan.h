/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_FIND_PLAN_H
#define NEUROSHARD_CLI_FIND_PLAN_H

#include "cli/command.h"
#include "core/plan.h"
#include "search/search.h"

/*
 * The search that the options of `plan` choose, for one problem and, over a
 * range of numbers of GPUs, for one after another.
 */

/* Fills a plan whose problem is set: searched, from `from` where --from is
 * given, and then with its report, which may be NULL; priced and judged. */
int find_plan(struct plan *plan, const struct plan *from,
              struct replan_report *report, const struct oracle *oracle,
              struct cli *cli, struct err *err) MUST_CHECK;

/*
 * Plans for each number of GPUs that --gpus asks about, and prints a line each
 * on stdout when it is known (--json: all at the end), then which is the
 * smallest that fits and which the fastest. The problem is that of the first
 * one. --output gets the plan of the smallest. SIGINT ends it after the number
 * in hand. ERR_NO_PLAN, with what would make the largest fit, where none does.
 */
int find_plans_by_count(const struct problem *problem, const struct plan *from,
                        struct cli *cli, struct err *err) MUST_CHECK;

#endif
