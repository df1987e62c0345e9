/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXPLAIN_EXPLAIN_H
#define NEUROSHARD_EXPLAIN_EXPLAIN_H

#include "base/json.h"
#include "explain/scenarios.h"
#include "explain/shifts.h"

/*
 * The two answers of `explain`, each as a text report and as JSON:
 *
 *   - which resources limit a plan
 *   - why a table is placed and sharded as it is
 */

struct explained {
    struct what_if what_if; /* the plan being explained, priced by the oracle */
    /* GPU whose pieces are examined, and of which the report lists all pieces;
     * ANY_GPU: the GPU that is the bottleneck is examined */
    uint32_t gpu;
    size_t n_columns; /* line width, as in struct report_options */
    /* [n_what_ifs]: the plan under other settings; the first is the plan
     * itself */
    const struct scenario *what_ifs;
    size_t n_what_ifs;
    /* [n_anew] fresh plans; the first is for the plan's own problem */
    const struct scenario *anew;
    size_t n_anew;
    const char *command; /* command line to type if the plan does not fit; or
                            NULL */
    struct arena *arena;
};
#define ANY_GPU UINT32_MAX

/* Appends the report on a plan, which ends in a newline. Returns the report as
 * JSON, which the caller decrefs. */
json_t *explain_plan(struct explained *explained, struct buf *out);
/* Explains the place and the sharding of one table; `table` is an index into
 * the problem. The other tables of its group move together with it. */
json_t *explain_table(struct explained *explained, uint32_t table,
                      struct buf *out);

#endif
