/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_EXPLAIN_H
#define NEUROSHARD_EMIT_EXPLAIN_H

#include "base/json.h"
#include "core/shifts.h"

/*
 * The two answers of `explain`: which resources limit a plan, and why a table
 * has its place and its sharding. Each is given as a report and as JSON.
 */

struct anew;
struct explained {
    struct what_if what_if; /* the explained plan, priced by the oracle */
    uint32_t gpu; /* GPU whose pieces are explained; ANY_GPU: the bottleneck */
    const struct anew *anew; /* [n_anew] */
    size_t n_anew;
    struct arena *arena;
};
#define ANY_GPU UINT32_MAX

/* Result of a new search: with the same problem, or with a change such as one
 * more GPU. */
struct anew {
    const char *what; /* the change: "on 9 GPUs" */
    double total_ms;  /* NAN: no plan was found */
    /* time saved compared with the plan or, if entry 0 (the same problem) is
     * better, with entry 0; NAN: no plan was found */
    double gain_ms;
};

/* Appends the report, which ends in a newline. Returns its JSON, which the
 * caller decrefs. */
json_t *explain_plan(struct explained *explained, struct buf *out);
/* Explains one table, an index into the problem. The tables of its group move
 * with it. */
json_t *explain_table(struct explained *explained, uint32_t table,
                      struct buf *out);

#endif
