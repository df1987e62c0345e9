/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_WAYS_H
#define NEUROSHARD_CORE_WAYS_H

#include "core/what_if.h"

/* Alternative ways to place one table of a plan: whole on another GPU, one of
 * its pieces on another GPU, in columns, in rows, or replicated. The rest of
 * the plan stays as it is. Each way is a plan that is priced and checked like
 * any other. */

struct way {
    const char *name; /* "whole on GPU 3", in the arena */
    double total_ms;  /* step time; NAN if the cost model cannot price it */
    /* change of the step time from the given plan; NAN if not priced */
    double change_ms;
    bool is_allowed; /* result of plan_check */
    /* reason why the way is not allowed, one short sentence in the arena; or
     * NULL */
    const char *why_not;
    struct plan plan; /* the plan, if it is priced */
};

#define MAX_WAYS 16
struct ways {
    uint32_t table;
    double without_ms; /* step time without the table and its group */
    /* [n + n_untried]: n ways, then one entry with the reason for each shard
     * kind without a way. */
    struct way ways[MAX_WAYS + N_SHARD_KINDS];
    size_t n, n_untried;
};

/*
 * Finds the ways to place a table.
 *
 *   - Whole on another GPU, and one piece on another GPU: lists the three best
 *     of each, with those that fit in memory first. With more than 256 GPUs,
 *     tries only those with the least compute time after the change.
 *   - Columns: even pieces on the GPUs with the least compute time after the
 *     change.
 *   - Rows: over all GPUs, and over the GPUs of the best host.
 *   - Replicated.
 *
 * Leaves out the way in which the plan has the table already.
 */
void ways_find(struct ways *ways, struct what_if *what_if, uint32_t table,
               struct arena *arena);
/* Returns true if tables a and b must be placed together: they are one table,
 * or in one group. */
bool ways_share(const struct problem *problem, uint32_t a, uint32_t b);
/* Returns the cheapest way that is allowed, or NULL. */
const struct way *ways_best(const struct ways *ways);

#endif
