/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_EXPLAIN_H
#define NEUROSHARD_EMIT_EXPLAIN_H

#include "base/json.h"
#include "core/shifts.h"

/*
 * The two answers of `explain`: what binds a plan, and why a table is where
 * and as it is. Each as a report and as JSON.
 */

struct anew;
struct explained {
    struct what_if what_if;  /* of a plan that the oracle has priced */
    uint32_t gpu;            /* whose pieces are of interest; ANY_GPU: those of
                                the one that binds */
    const struct anew *anew; /* [n_anew] */
    size_t n_anew;
    struct arena *arena;
};
#define ANY_GPU UINT32_MAX

/* What a search would find, of these tables or where something was bought. */
struct anew {
    const char *what; /* "one more GPU, 9" */
    double total_ms;  /* NAN: nothing was found */
    double gain_ms;   /* what that takes less than the plan or the first of
                         these; likewise */
};

/* Appends the report, which ends in a newline; the caller decrefs the JSON. */
json_t *explain_plan(struct explained *explained, struct buf *out);
/* Of one table, an index into the problem; tables of its group go with it. */
json_t *explain_table(struct explained *explained, uint32_t table,
                      struct buf *out);

#endif
