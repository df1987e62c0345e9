/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_REPORT_H
#define NEUROSHARD_EMIT_REPORT_H

#include "emit/compare_table.h"

/*
 * A plan in the words of a person. Plans come here judged (plan_check), with
 * their shards in order. And the sections of the report, and what they have in
 * common with what else is said of a plan.
 */

/* What a report has besides the plan. Zeroed: nothing of it. */
struct report_options {
    size_t n_columns; /* that lines may have; 0: 80, more than 1000: all that
                         there is to say */
    bool waits;       /* what priced it has GPUs wait for each other */
    const double *without_ms; /* [n_tables]: the step without each; or NULL */
    double plain_ms; /* the step if the job did not de-duplicate ids; NAN or 0:
                        not known */
    const struct compare_entry *rivals; /* [n_rivals]: paired with the plan, of
                                           names as "TorchRec's planner" */
    size_t n_rivals;
};

/* The report a person reads first, of a plan that is priced: how long the step
 * is and what it is worth, what binds it and what was assumed; then phases and
 * memory by GPU, and the tables that matter. Ends in a newline. Tables keep to
 * the columns there are; lines of words are to be wrapped (text_wrap_lines). */
void emit_report(const struct plan *plan, const struct report_options *options,
                 struct buf *out);

/* A device's step, with its waiting told apart from its communication. */
struct report_device {
    struct device_cost cost; /* without the waiting */
    double own_ms;           /* until others wait for it */
    double waiting_ms; /* until the last device is ready for the forward */
    size_t n_shards[N_SHARD_KINDS]; /* by kind */
};

/* One for all bytes of a table, so that its columns compare by eye; the last
 * one has no name. */
struct byte_unit {
    const char *name;
    double n_bytes;
};
extern const struct byte_unit byte_units[];

/* Of the step: what is less is not worth a word. */
#define REPORT_NOTABLE_FRAC 5e-3

/* What a step waits for. */
struct bottleneck {
    uint32_t gpu;      /* that is ready last; of GPUs that do not wait for each
                          other the slowest */
    const char *phase; /* without which the step would be shorter by most, or
                          where no phases are known its largest part */
    double phase_ms;   /* of the step */
    uint32_t table;    /* the same; n_tables where none is notable */
    double table_ms;
};

struct report {
    const struct plan *plan;
    struct report_options options; /* with the columns that lines may have */
    uint32_t n_devices;
    struct report_device *devices; /* [n_devices]; owned */
    struct bottleneck bottleneck;
};

void report_init(struct report *report, const struct plan *plan,
                 const struct report_options *options);
void report_release(struct report *report);

/* What a device's step takes until others wait for it. */
double report_own_ms(const struct device_cost *cost, bool waits);
/* Of a plan that is priced; `without_ms` as in the options. */
void bottleneck_find(struct bottleneck *out, const struct plan *plan,
                     bool waits, const double *without_ms);
/* "binds   GPU 4 ..." */
void report_bottleneck(const struct report *report, struct buf *out);

/* The line below that of the step: the job that it is of. */
void report_job(const struct plan *plan, struct buf *out);
/* "bound   no plan takes less than ..." */
void report_bound(const struct plan *plan, int n_decimals, struct buf *out);
/* Each phase, busy time and waiting by device, and what of a phase is exposed;
 * of many devices those about as late in one row. */
void report_phases(const struct report *report, struct buf *out);
/* What each device's memory holds, the fullest first. */
void report_memory(const struct report *report, struct buf *out);
/* The ten tables without which the step is shortest. */
void report_tables(const struct report *report, struct buf *out);

#endif
