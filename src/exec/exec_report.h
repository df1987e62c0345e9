/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_REPORT_H
#define NEUROSHARD_EXEC_EXEC_REPORT_H

#include "exec/exec_options.h"
#include "exec/exec_result.h"

/* Inputs of the report on an executed plan. */

struct exec_report {
    const struct plan *plan;
    const struct world *world;
    const struct device *device;
    const struct exec_options *options;
    const struct exec_result *result;
    struct arena *arena;
};

/* Appends the report as text: the measured times of each rank next to its
 * predicted times, followed by notes. The text ends in a newline. */
void exec_report_print(const struct exec_report *run, struct buf *out);
/* Returns the report as JSON; the caller decrefs it. */
json_t *exec_report_to_json(const struct exec_report *run);

#endif
