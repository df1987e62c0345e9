/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXPLAIN_EXPLAIN_H
#define NEUROSHARD_EXPLAIN_EXPLAIN_H

#include "base/json.h"
#include "explain/shifts.h"

/*
 * The two answers of `explain`, each as a text report and as JSON:
 *
 *   - which resources limit a plan
 *   - why a table is placed and sharded as it is
 */

struct anew;
struct explained {
    struct what_if what_if; /* the plan being explained, priced by the oracle */
    /* GPU whose pieces are listed; ANY_GPU: the GPU that is the bottleneck */
    uint32_t gpu;
    const struct anew *anew; /* [n_anew] results of new searches */
    size_t n_anew;
    struct arena *arena;
};
#define ANY_GPU UINT32_MAX

/* Result of a new search for a plan, either for the same problem or for the
 * problem with a change, such as one more GPU. */
struct anew {
    const char *what; /* the change in words, such as "on 9 GPUs" */
    double total_ms;  /* step time of the new plan; NAN if no plan was found */
    /* Time that the new plan saves; NAN if no plan was found. The saving is
     * relative to the explained plan. If the new search for the same problem
     * (entry 0) found a better plan, it is relative to entry 0. */
    double gain_ms;
};

/* Appends the report on a plan, which ends in a newline. Returns the report as
 * JSON, which the caller decrefs. */
json_t *explain_plan(struct explained *explained, struct buf *out);
/* Explains the place and the sharding of one table; `table` is an index into
 * the problem. The other tables of its group move together with it. */
json_t *explain_table(struct explained *explained, uint32_t table,
                      struct buf *out);

#endif
