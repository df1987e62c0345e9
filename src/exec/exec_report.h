/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_REPORT_H
#define NEUROSHARD_EXEC_EXEC_REPORT_H

#include "exec/exec.h"

/* What is said of a plan that was executed. */

struct exec_report {
    const struct plan *plan;
    const struct world *world;
    const struct device *device;
    const struct exec_options *options;
    const struct exec_result *result;
    struct arena *arena;
};

/* What it takes by rank, beside what was predicted; ends in a newline. */
void exec_report_print(const struct exec_report *run, struct buf *out);
/* The same; the caller decrefs it. */
json_t *exec_report_to_json(const struct exec_report *run);

#endif
