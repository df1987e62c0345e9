/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_REPORT_H
#define NEUROSHARD_EMIT_REPORT_H

#include "emit/compare_table.h"

/*
 * Reports of a plan as text. Plans passed to this module have passed
 * plan_check, and their shards are sorted. Sections of the report, and helpers
 * shared with `explain` and `diff`, are declared here, too.
 */

/* Inputs of a report in addition to the plan. Zeroed: no inputs. */
struct report_options {
    /* line width; 0: 80 columns; above 1000: all tables in full */
    size_t n_columns;
    bool waits; /* in the cost model GPUs wait for each other */
    /* [n_tables] step time without each table; or NULL */
    const double *without_ms;
    /* step time if the job did not deduplicate ids; NAN or 0: unknown */
    double plain_ms;
    /* [n_rivals] other planners, such as "TorchRec's planner", paired with the
     * plan */
    const struct compare_entry *rivals;
    size_t n_rivals;
};

/* Prints the report of a priced plan: the step time, the lower bound, the
 * bottleneck and the assumptions, then phases and memory by GPU, and the most
 * expensive tables. It ends in a newline. Tables keep to the line width; the
 * caller wraps text lines (text_wrap_lines). */
void emit_report(const struct plan *plan, const struct report_options *options,
                 struct buf *out);

/* A device's step, with its waiting separated from its communication. */
struct report_device {
    struct device_cost cost; /* cost without the waiting */
    double own_ms; /* time until the other devices wait for this one */
    /* time until the last device is ready for the forward all-to-all */
    double waiting_ms;
    size_t n_shards[N_SHARD_KINDS]; /* number of shards by kind */
};

/* Unit of bytes. A table uses one unit, so that its columns compare by eye. The
 * list ends with an entry without a name. */
struct byte_unit {
    const char *name;
    double n_bytes;
};
extern const struct byte_unit byte_units[];

/* Smallest time that a report mentions, as a fraction of the step. */
#define REPORT_NOTABLE_FRAC 5e-3

/* The bottleneck of a step. */
struct bottleneck {
    /* GPU that is ready last; the slowest one if GPUs do not wait */
    uint32_t gpu;
    /* phase that would save most if removed; if phases are unknown, the largest
     * part of the step */
    const char *phase;
    double phase_ms; /* its part of the step */
    /* table that would save most if removed; n_tables: no table is notable */
    uint32_t table;
    double table_ms;
};

struct report {
    const struct plan *plan;
    struct report_options options; /* copy, with n_columns filled in */
    uint32_t n_devices;
    struct report_device *devices; /* [n_devices]; owned */
    struct bottleneck bottleneck;
};

void report_init(struct report *report, const struct plan *plan,
                 const struct report_options *options);
void report_release(struct report *report);

/* Returns the time of a device's step until the other devices wait for it. */
double report_own_ms(const struct device_cost *cost, bool waits);
/* Finds the bottleneck of a priced plan. `without_ms` is as in the options. */
void bottleneck_find(struct bottleneck *out, const struct plan *plan,
                     bool waits, const double *without_ms);
/* Prints "binds   GPU 4 ..." */
void report_bottleneck(const struct report *report, struct buf *out);

/* Prints the line below the step time: the job that it assumes. */
void report_job(const struct plan *plan, struct buf *out);
/* Prints "bound   no plan takes less than ..." */
void report_bound(const struct plan *plan, int n_decimals, struct buf *out);
/* Prints each device's phases, busy time and waiting, and the exposed time of
 * each phase. If there are many devices, similar ones share a row. */
void report_phases(const struct report *report, struct buf *out);
/* Prints the memory of each device, the fullest first. */
void report_memory(const struct report *report, struct buf *out);
/* Prints the ten tables whose removal would save most of the step. */
void report_tables(const struct report *report, struct buf *out);

#endif
