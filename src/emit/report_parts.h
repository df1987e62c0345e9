/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_REPORT_PARTS_H
#define NEUROSHARD_EMIT_REPORT_PARTS_H

#include "emit/report_figures.h"

/*
 * Parts of the report of a plan, some of which `explain` and `diff` print, too.
 */

/* Unit in which bytes are printed. All cells of a table use one unit, so that
 * they can be compared by eye. A list of units ends with an entry without a
 * name. */
struct byte_unit {
    const char *name;
    double n_bytes;
};
extern const struct byte_unit byte_units[];

/* Prints the job that the step time assumes, as the line below the step
 * time. */
void report_job(const struct plan *plan, struct buf *out);
/* Prints the step time, its range, GPU work and host, without a line break:
 * "step    3.0 ms, 2.6 to 3.4: GPU work 2.2 ms +-10 %, host 2.00 ms ..." */
void report_step(const struct plan *plan, int n_decimals, struct buf *out);
/* Prints the lower bound: "bound   no plan has less GPU work than ..." */
void report_bound(const struct plan *plan, int n_decimals, struct buf *out);
/* Prints a line that begins with the label and gives the time that the busiest
 * GPU spends on tables that the plan does not place, and their kinds of
 * sharding. Prints nothing if there are none. */
void report_other_tables(const struct plan *plan, const char *label,
                         struct buf *out);
/* Prints a line that begins with the label and names the GPU that is measured
 * to be slowest. Prints nothing if none is slow. */
void report_slow_gpus(const struct plan *plan, const char *label,
                      struct buf *out);
/* Prints a table with the phases, busy time and waiting of each device, and
 * with the exposed time of each phase. If there are many devices, similar
 * devices share a row. */
void report_phases(const struct report *report, struct buf *out);
/* Prints the memory of each device, starting with the fullest device. */
void report_memory(const struct report *report, struct buf *out);
/* Prints the ten tables whose removal would save most of the step. */
void report_tables(const struct report *report, struct buf *out);

#endif
