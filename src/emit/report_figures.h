/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_REPORT_FIGURES_H
#define NEUROSHARD_EMIT_REPORT_FIGURES_H

#include "emit/compare_table.h"
#include "emit/groups_line.h"

/*
 * Figures of the report of a plan: its devices and its bottleneck. `explain`
 * uses them, too. The plan must have passed plan_check, and its shards must be
 * sorted.
 */

/* Plan that does without some shardings of the cheapest plan. */
struct report_alternative {
    const char *without; /* such as "row cuts" */
    double ratio;        /* its GPU work as a multiple of the plan's */
    double error;        /* the ratio is within +- this; NAN: unknown */
    /* its step as a multiple of the plan's; NAN if it equals `ratio` */
    double step_ratio;
    bool keeps_training; /* it does without all changes of training */
    bool is_chosen;      /* the plan does without, too */
};

/* Inputs of a report in addition to the plan. Zeroed options mean that there
 * are no such inputs. */
struct report_options {
    bool is_default_batch; /* true: the user has not named the batch */
    /* file that the plan was written to, or NULL */
    const char *path;
    /* [n_alternatives] plans without some shardings */
    const struct report_alternative *alternatives;
    size_t n_alternatives;
    /* line width; 0: 80 columns; above 1000: tables are never shortened */
    size_t n_columns;
    bool waits; /* true if GPUs wait for each other in the cost model */
    /* [n_tables] step time of the plan without each table; or NULL */
    const double *without_ms;
    /* number of groups that would shorten the step, or NULL */
    const struct groups_estimate *groups;
    /* step time if the job did not deduplicate ids; NAN or 0 if unknown */
    double plain_ms;
    /* [n_rivals] other planners, such as "TorchRec's planner", each compared
     * with the plan */
    const struct compare_entry *rivals;
    size_t n_rivals;
};

/* A device's part of the step, with waiting separated from communication. */
struct report_device {
    struct device_cost cost; /* cost without the time that the device waits */
    /* time until this device is ready and only waits for other devices */
    double own_ms;
    /* time until the last device is ready for the forward all-to-all */
    double waiting_ms;
    size_t n_shards[N_SHARD_KINDS]; /* number of shards by kind */
};

/* Smallest time that a report mentions, as a fraction of the step time. */
#define REPORT_NOTABLE_FRAC 5e-3

/* A table without which the step would be shorter by a notable time. */
struct saving {
    uint32_t table;
    size_t begin, end; /* its shards: plan->shards[begin] .. [end - 1] */
    double ms;         /* time by which the step would be shorter */
    double alone_ms;   /* sum of its shard_ms; 0 if they are unknown */
};
/* Fills savings[] with these tables, the largest saving first. Savings that
 * round to the same microsecond are ordered by alone_ms, the longest time
 * first, because each table of a GPU may have the same saving. savings[] has
 * room for all tables. Returns the number of savings. */
size_t savings_find(struct saving *savings, const struct plan *plan,
                    const double *without_ms);
/* Returns whether two savings are equal when they are printed. */
bool savings_equal(const struct saving *a, const struct saving *b);

/* The bottleneck of a step. */
struct bottleneck {
    /* GPU that is ready last; if GPUs do not wait, the slowest GPU */
    uint32_t gpu;
    /* phase whose removal would save most time; if times of phases are unknown,
     * the largest part of the step */
    const char *phase;
    double phase_ms; /* time of `phase` */
    /* first table of savings_find, on any GPU; n_tables if no table saves a
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

#endif
