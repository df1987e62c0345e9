/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLAN_GRID_H
#define NEUROSHARD_CLI_PLAN_GRID_H

#include "cli/plan_report.h"

/* Plans for several GPUs or numbers of GPUs: the command `plan` with
 * --gpus N..M, --gpu A,B, --price or --target-rate. */

/* Returns whether the options ask for such plans. */
bool plan_has_grid(struct cli *cli);
/*
 * Plans for each GPU of --gpu with each number of GPUs of --gpus.
 *
 * One GPU, without --price and --target-rate: prints a line for each number as
 * soon as its result is known (with --json: all results at the end). Then
 * prints the smallest number for which a plan fits, and the fastest one. The
 * plan of the smallest number is written to --output.
 *
 * Otherwise prints one table at the end, the fastest row first, with prices and
 * the cheapest row that meets the target.
 *
 * --time-limit applies to all rows together; each gets an equal share of the
 * time left. SIGINT and the end of the time leave out the last rows. If no plan
 * fits in any row, fails with ERR_NO_PLAN and suggests remedies for the last
 * row.
 */
int plan_grid(struct plan_request *request, struct err *err) MUST_CHECK;

#endif
