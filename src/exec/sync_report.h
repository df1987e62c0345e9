/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_SYNC_REPORT_H
#define NEUROSHARD_EXEC_SYNC_REPORT_H

#include "base/json.h"
#include "core/plan.h"
#include "exec/sync_result.h"

/* Reports of the sharding groups of an execution: as text and as JSON. */

struct sync_report {
    const struct plan *plan;
    const struct sync_result *result;
    uint64_t sync_every; /* steps from one sync to the next; 0: unknown */
    double scale_rows;
};

/* Prints the number and layout of the groups, as the end of a sentence; nothing
 * if there is one group. */
void sync_report_groups(const struct plan *plan, struct buf *out);
/* Prints the time of a sync and its bytes, measured and predicted; nothing if
 * there is one group. */
void sync_report_print(const struct sync_report *report, struct buf *out);
/* Returns NULL if there is one group. */
json_t *sync_report_to_json(const struct sync_report *report);

#endif
