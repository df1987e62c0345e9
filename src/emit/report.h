/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_REPORT_H
#define NEUROSHARD_EMIT_REPORT_H

#include "emit/compare_table.h"

/*
 * Reports of a plan as text.
 *
 * Every plan that is passed to this module must have passed plan_check, and its
 * shards must be sorted. The functions that `explain` and `diff` share with the
 * report are declared here, too.
 */

/* Inputs of a report in addition to the plan. Zeroed options mean that there
 * are no such inputs. */
struct report_options {
    /* line width; 0: 80 columns; above 1000: tables are never shortened */
    size_t n_columns;
    bool waits; /* true if GPUs wait for each other in the cost model */
    /* [n_tables] step time of the plan without each table; or NULL */
    const double *without_ms;
    /* step time if the job did not deduplicate ids; NAN or 0 if unknown */
    double plain_ms;
    /* [n_rivals] other planners, such as "TorchRec's planner", each compared
     * with the plan */
    const struct compare_entry *rivals;
    size_t n_rivals;
};

/*
 * Prints the report of a priced plan:
 *
 *   - the step time, the lower bound, the bottleneck and the assumptions
 *   - phases and memory by GPU
 *   - the most expensive tables
 *
 * The report ends in a newline. Tables keep to the line width. Lines of text
 * are longer, and the caller has to wrap them (text_wrap_lines).
 */
void emit_report(const struct plan *plan, const struct report_options *options,
                 struct buf *out);

/* A device's part of the step, with waiting separated from communication. */
struct report_device {
    struct device_cost cost; /* cost without the time that the device waits */
    /* time until this device is ready and only waits for other devices */
    double own_ms;
    /* time until the last device is ready for the forward all-to-all */
    double waiting_ms;
    size_t n_shards[N_SHARD_KINDS]; /* number of shards by kind */
};

/* Unit in which bytes are printed. All cells of a table use one unit, so that
 * they can be compared by eye. A list of units ends with an entry without a
 * name. */
struct byte_unit {
    const char *name;
    double n_bytes;
};
extern const struct byte_unit byte_units[];

/* Smallest time that a report mentions, as a fraction of the step time. */
#define REPORT_NOTABLE_FRAC 5e-3

/* The bottleneck of a step. */
struct bottleneck {
    /* GPU that is ready last; if GPUs do not wait, the slowest GPU */
    uint32_t gpu;
    /* phase whose removal would save most time; if times of phases are unknown,
     * the largest part of the step */
    const char *phase;
    double phase_ms; /* time of `phase` */
    /* table whose removal would save most time; n_tables if no table saves a
     * notable time */
    uint32_t table;
    double table_ms;
};

struct report {
    const struct plan *plan;
    /* copy of the caller's options, with n_columns filled in */
    struct report_options options;
    uint32_t n_devices;
    struct report_device *devices; /* [n_devices] the plan's devices; owned */
    struct bottleneck bottleneck;
};

void report_init(struct report *report, const struct plan *plan,
                 const struct report_options *options);
void report_release(struct report *report);

/* Returns the time until a device is ready and only waits for other devices. */
double report_own_ms(const struct device_cost *cost, bool waits);
/* Finds the bottleneck of a priced plan. `without_ms` has the meaning of the
 * member of struct report_options. */
void bottleneck_find(struct bottleneck *out, const struct plan *plan,
                     bool waits, const double *without_ms);
/* Prints the bottleneck line: "binds   GPU 4 ..." */
void report_bottleneck(const struct report *report, struct buf *out);

/* Prints the job that the step time assumes, as the line below the step
 * time. */
void report_job(const struct plan *plan, struct buf *out);
/* Prints the lower bound: "bound   no plan takes less than ..." */
void report_bound(const struct plan *plan, int n_decimals, struct buf *out);
/* Prints a table with the phases, busy time and waiting of each device, and
 * with the exposed time of each phase. If there are many devices, similar
 * devices share a row. */
void report_phases(const struct report *report, struct buf *out);
/* Prints the memory of each device, starting with the fullest device. */
void report_memory(const struct report *report, struct buf *out);
/* Prints the ten tables whose removal would save most of the step. */
void report_tables(const struct report *report, struct buf *out);

#endif
