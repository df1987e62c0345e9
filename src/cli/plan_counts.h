/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLAN_COUNTS_H
#define NEUROSHARD_CLI_PLAN_COUNTS_H

#include "cli/plan_report.h"

/* Plans for a range of numbers of GPUs: the command `plan` with --gpus N..M. */

/*
 * Plans for each number of GPUs in the range of --gpus. Prints a line for each
 * number on stdout as soon as its result is known (with --json: all results at
 * the end). Then prints the smallest number for which a plan fits, and the
 * fastest one. The plan of the smallest number is written to --output.
 * --time-limit applies to all numbers together; each gets an equal share of the
 * time left. SIGINT and the end of the time leave out the larger numbers. If no
 * plan fits any number, fails with ERR_NO_PLAN and suggests remedies for the
 * largest number.
 */
int plan_counts(struct plan_request *request, struct err *err) MUST_CHECK;

#endif
