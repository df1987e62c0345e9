/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_CACHE_REPORT_H
#define NEUROSHARD_EXEC_CACHE_REPORT_H

#include "base/json.h"
#include "exec/exec_result.h"

/* The part of the report on an executed plan that describes its caches. */

/* Appends a table of the caches, measured and as the plan predicts them, and
 * notes. Appends nothing if there are no caches. */
void cache_report_print(const struct plan *plan,
                        const struct exec_result *result, struct arena *arena,
                        struct buf *out);
/* Returns the table as JSON, or NULL if there are no caches. The caller decrefs
 * it. */
json_t *cache_report_to_json(const struct plan *plan,
                             const struct exec_result *result);

#endif
