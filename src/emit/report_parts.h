/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_REPORT_PARTS_H
#define NEUROSHARD_EMIT_REPORT_PARTS_H

#include "emit/emit.h"

/* The sections of emit_report and what they have in common. */

/* A device's step, with its waiting told apart from its communication. */
struct report_device {
    struct device_cost cost; /* without the waiting */
    double waiting_ms; /* until the last device is ready for the forward */
    size_t n_shards[N_SHARD_KINDS]; /* by kind */
};

struct report {
    const struct plan *plan;
    uint32_t n_devices;
    struct report_device *devices; /* [n_devices]; owned */
    struct report_device mean;     /* times only */
    uint32_t *slowest; /* [n_devices], slowest first: by total, or of those that
                          wait for each other the one that is ready last;
                          owned */
};

void report_init(struct report *report, const struct plan *plan);
void report_release(struct report *report);

/* When a device is ready for the forward exchange. */
double report_ready_ms(const struct report_device *device);

/* " +-16 %" behind the step's time; nothing where it is not known. */
void report_error(const struct plan *plan, struct buf *out);
/* A line for each of a few inputs outside of what the model was made from. */
void report_outside(const struct cost_source *cost, struct buf *out);
/* All of them; the caller decrefs it. */
json_t *report_outside_json(const struct cost_source *cost);
/* The lines below that of the step: the job that it is of, and what of each
 * part is exposed; one where the cost model heeds no job. */
void report_job(const struct plan *plan, struct buf *out);
/* The parts of the step by device. Nothing where none are known. */
void report_phases(const struct report *report, struct buf *out);
void report_devices(const struct report *report, struct buf *out);
/* Which part makes the slowest GPU slow. Nothing of one alone. */
void report_slowest(const struct report *report, struct buf *out);
/* The ten tables that cost most. */
void report_tables(const struct report *report, struct buf *out);

/* "TW 3 CW 2" of counts by kind, in buf. */
#define REPORT_KINDS_MAX 128
const char *report_kinds(char buf[REPORT_KINDS_MAX],
                         const size_t n_shards[N_SHARD_KINDS]);

#endif
