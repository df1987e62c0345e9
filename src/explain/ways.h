/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXPLAIN_WAYS_H
#define NEUROSHARD_EXPLAIN_WAYS_H

#include "core/what_if.h"

/* Alternative ways to place one table of a plan: the whole table on another
 * GPU, one of its pieces on another GPU, cut by columns, cut by rows, or
 * replicated. The rest of the plan stays as it is. For each way there is a
 * complete plan, which is priced and checked like any other plan. */

struct way {
    const char *name; /* name such as "whole on GPU 3", in the arena */
    /* step time; NAN if the cost model cannot price the way */
    double total_ms;
    /* step time minus the step time of the given plan; NAN if not priced */
    double change_ms;
    bool is_allowed; /* true: plan_check accepts the plan */
    /* reason why the way is not allowed, one short sentence in the arena; or
     * NULL */
    const char *why_not;
    /* complete plan with the table placed in this way, if it is priced */
    struct plan plan;
};

/* 3 GPUs for the whole table, 3 moves, 5 column cuts, 3 row cuts, a grid,
 * replicas */
#define MAX_WAYS 16
struct ways {
    uint32_t table;
    /* step time of the plan without the table and its group */
    double without_ms;
    /* [n + n_untried]: first n ways, then n_untried entries. Each of the
     * n_untried entries stands for a shard kind without a way, and its why_not
     * is the reason. */
    struct way ways[MAX_WAYS + N_SHARD_KINDS];
    size_t n, n_untried;
};

/*
 * Finds the ways to place a table:
 *
 *   - Whole table on another GPU: lists the three best GPUs.
 *   - One piece on another GPU: lists the three best moves.
 *   - Columns: 2, 4, 8 and 16 pieces, and the best other number.
 *   - Rows: over all GPUs, over the GPUs of the best host, and the best other
 *     number of blocks.
 *   - Grid: the best one.
 *   - Replicated.
 *
 * All ways but single moves are shardings that the search has for the table
 * (explain/choices.h). Pieces that may be on any GPU or host are put on those
 * with the least compute time after the change. A way that fits in memory is
 * better than one that does not. With more than 256 GPUs, whole tables, single
 * pieces and row blocks of a host are tried only on the GPUs with the least
 * compute time after the change. Leaves out the way in which the plan has the
 * table already.
 */
void ways_find(struct ways *ways, struct what_if *what_if, uint32_t table,
               struct arena *arena);
/* Returns the cheapest way that is allowed, or NULL if no way is allowed. */
const struct way *ways_best(const struct ways *ways);

#endif
