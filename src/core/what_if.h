/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_WHAT_IF_H
#define NEUROSHARD_CORE_WHAT_IF_H

#include "core/plan.h"

/* The price of a plan after some of its shards are replaced. An edit removes
 * shards and adds shards. what_if_step prices an edit in O(R) time and one call
 * of the oracle's comm, fast enough to rank thousands of edits. plan_price_edit
 * (core/plan_price.h) makes a complete, priced plan with the edit. The step
 * times of both functions agree except for rounding. */

struct edit {
    /* [n_gone]: shards to remove, as indices into the plan's shards */
    const size_t *gone;
    size_t n_gone;
    struct shard *come; /* [n_come]: shards to add, with correct kinds */
    size_t n_come;
};

struct what_if {
    /* The plan to edit, not owned. Its shards must be sorted. For what_if_fits,
     * its memory must be counted (core/plan_memory.h). */
    const struct plan *plan;
    const struct oracle *oracle; /* not owned */
    struct arena arena;          /* owned; holds the arrays of this struct */
    /* [n_shards][width]: embedding of each shard */
    double *vectors;
    double *sums; /* [R][width]: sum of the vectors of each device's shards */
    /* [R]: bytes that a device uses after the edit, valid for devices that get
     * a shard */
    uint64_t *edited_bytes;
    /* Results of the last call of what_if_step: the three times are [R], and
     * step_sums is [R][width]. */
    double *compute_ms, *bwd_comm_ms, *fwd_comm_ms, *step_sums;
};

void what_if_init(struct what_if *what_if, const struct plan *plan,
                  const struct oracle *oracle);
void what_if_release(struct what_if *what_if);

/* Returns the step time of the plan with this edit, or INFINITY if the oracle
 * predicts no finite step time. Stores the times of each GPU in *what_if, where
 * they stay until the next call. The oracle must be able to price the kinds of
 * the added shards. */
double what_if_step(struct what_if *what_if, const struct edit *edit);

/* Returns an array [n_tables] in the arena: for each table, the step time of
 * the plan without this table, computed by what_if_step. */
const double *what_if_without(const struct plan *plan,
                              const struct oracle *oracle, struct arena *arena);

/* Returns true if each GPU that gets a shard by the edit has enough memory for
 * it. Takes O(n_gone + n_come) time. */
bool what_if_fits(struct what_if *what_if, const struct edit *edit);

#endif
