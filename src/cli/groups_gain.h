/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_GROUPS_GAIN_H
#define NEUROSHARD_CLI_GROUPS_GAIN_H

#include "emit/groups_line.h"

/* Estimates the gain of groups for a plan with one group on several hosts: the
 * plan is folded into a plan of one group, once for each number of groups, and
 * priced. Returns false if no number of groups gains 1 % of a step. */
bool plan_groups_estimate(struct groups_estimate *out, const struct plan *plan,
                          struct arena *arena);

#endif
