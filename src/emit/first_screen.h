/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_FIRST_SCREEN_H
#define NEUROSHARD_EMIT_FIRST_SCREEN_H

#include "emit/report_figures.h"

/* Number of lines of the first screen. */
#define FIRST_SCREEN_LINES 14u

/*
 * Prints the first screen of a priced plan, at most FIRST_SCREEN_LINES lines at
 * 80 columns:
 *
 *   - step time and samples a second
 *   - GPU work and host time, and which of them the step waits for
 *   - the gain over other planners
 *   - memory, and whether training is unchanged
 *   - tables whose training changes, other cut and replicated tables, and the
 *     GPU work without these cuts
 *   - a line for each GPU, or for each group of about equally busy GPUs: the
 *     time that its tables take alone, its memory and most expensive tables. A
 *     group shows its longest time, its largest memory, and the tables of its
 *     busiest GPU.
 *   - the bandwidth below which another plan is better, if it is assumed
 *   - the assumptions, and the next command
 *
 * A table that is cut into n pieces is named NAME/n, a replicated one NAME*.
 * The plan must have passed plan_check, and its shards must be sorted. The
 * report of emit_report has the details.
 */
void emit_first_screen(const struct plan *plan,
                       const struct report_options *options, struct buf *out);

#endif
