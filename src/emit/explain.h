/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_EXPLAIN_H
#define NEUROSHARD_EMIT_EXPLAIN_H

#include "base/json.h"
#include "core/what_if.h"

/*
 * The two answers of `explain`: what binds a plan, and why a table is where
 * and as it is. Each as a report or as JSON.
 */

struct explained {
    struct what_if what_if;  /* of a plan that the oracle has priced */
    double bound_ms;         /* of any plan of this problem, or NAN */
    const char *bound_term;  /* what sets it, or NULL */
    const char *bound_table; /* whose piece sets it, or NULL */
    struct arena *arena;
};

/* Appends to `out`, ends in a newline. */
void explain_plan(struct explained *explained, struct buf *out);
/* The caller decrefs it. */
json_t *explain_plan_json(struct explained *explained);

/* Of one table, an index into the problem; tables of its group go with it. */
void explain_table(struct explained *explained, uint32_t table,
                   struct buf *out);
json_t *explain_table_json(struct explained *explained, uint32_t table);

#endif
