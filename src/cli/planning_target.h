/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLANNING_TARGET_H
#define NEUROSHARD_CLI_PLANNING_TARGET_H

#include "cli/command.h"
#include "core/problem.h"

/* The target of a planning problem (core/target_rules.h), from the options. */

/* Sets the target and the row cuts. Without --target, the target is that of the
 * current plan, `like`, or torchrec. The cluster and the allowed kinds must be
 * set. Fails with ERR_USAGE. */
int planning_set_target(struct problem *problem, const struct problem *like,
                        struct cli *cli, struct err *err) MUST_CHECK;
/* Changes the tables as the target does (target_adopt), and checks that the
 * target takes them. If the user chose no target and TorchRec does not take the
 * tables, warns and plans them without a target. Otherwise fails with
 * ERR_INPUT. */
int planning_adopt_target(struct problem *problem, struct cli *cli,
                          struct err *err) MUST_CHECK;

#endif
