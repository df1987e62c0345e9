/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_WAYS_H
#define NEUROSHARD_CORE_WAYS_H

#include "core/what_if.h"

/*
 * Other ways to place one table of a plan, all else as it is: whole on another
 * GPU, one of its pieces on another, in columns, in rows, replicated. Each is a
 * plan, priced and judged as any plan is.
 */

struct way {
    const char *name;    /* "whole on GPU 3", in the arena */
    double total_ms;     /* NAN where the cost model cannot price it */
    double change_ms;    /* from the plan as it is; likewise */
    bool is_allowed;     /* plan_check says so */
    const char *why_not; /* a short sentence, in the arena; or NULL */
    struct plan plan;    /* where it is priced */
};

#define MAX_WAYS 16
struct ways {
    uint32_t table;
    double without_ms; /* the step without the table and its group */
    /* [n], and behind them kinds of which there is none, with the reason. */
    struct way ways[MAX_WAYS + N_SHARD_KINDS];
    size_t n, n_untried;
};

/* Of where a table goes whole, and of which piece goes where, the three best
 * are listed: those that have the memory first; of more than 256 GPUs, those
 * are tried that compute least then. Columns go, in even pieces, to the GPUs
 * that have least to compute then; rows over all GPUs, and over those of the
 * best host. What the plan does already is left out. */
void ways_find(struct ways *ways, struct what_if *what_if, uint32_t table,
               struct arena *arena);
/* Whether table b goes where table a does: it is a, or of its group. */
bool ways_share(const struct problem *problem, uint32_t a, uint32_t b);
/* The cheapest that is allowed, or NULL. */
const struct way *ways_best(const struct ways *ways);

#endif
