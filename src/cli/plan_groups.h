/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLAN_GROUPS_H
#define NEUROSHARD_CLI_PLAN_GROUPS_H

#include "cli/plan_report.h"

/* Plans for sharding groups (core/sharding_groups.h): the command `plan` with
 * --groups. */

extern const struct option_spec groups_options[];

/* Checks the options of groups, and those that they exclude. */
int plan_groups_check(struct cli *cli, struct err *err) MUST_CHECK;
/* Returns whether the options ask for more than one group. */
bool plan_has_groups(const struct cli *cli);
/*
 * Plans for each number and layout of groups that --groups allows, and prints
 * the report of the plan with the shortest step. Fewer groups are preferred if
 * their step is at most GROUPS_LEAST_GAIN longer, because groups change
 * training. Numbers whose lower bound is above the best plan are not searched.
 *
 * Without --sync-every nobody knows the time of the syncs. Then a table shows
 * the step of each number of groups for several intervals; with --groups N the
 * plan of N groups follows, and with --groups auto there is no plan.
 */
#define GROUPS_LEAST_GAIN 0.005
int plan_groups(struct plan_request *request, struct err *err) MUST_CHECK;

#endif
