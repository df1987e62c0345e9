/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_WHAT_IF_H
#define NEUROSHARD_CORE_WHAT_IF_H

#include "core/plan.h"

/* The price of a plan after some of its shards are replaced. An edit removes
 * shards and adds shards. what_if_step prices an edit in O(R) and one comm,
 * fast enough to rank thousands of edits. what_if_apply makes a complete,
 * priced plan of it. The two prices agree except for rounding. */

struct edit {
    /* [n_gone]: shards to remove, as indices into the plan's shards */
    const size_t *gone;
    size_t n_gone;
    struct shard *come; /* [n_come]: shards to add, with correct kinds */
    size_t n_come;
};

struct what_if {
    /* Not owned. Its shards must be sorted, and what_if_fits needs its memory
     * counted. */
    const struct plan *plan;
    const struct oracle *oracle; /* not owned */
    struct arena arena;          /* owned; holds the arrays below */
    /* [n_shards][width]: embedding of each shard */
    double *vectors;
    double *sums; /* [R][width]: sums of these by device */
    /* [R]: bytes that the devices that get a shard use after the edit */
    uint64_t *edited_bytes;
    /* Result of the last what_if_step: [R] each, and step_sums [R][width]. */
    double *compute_ms, *bwd_comm_ms, *fwd_comm_ms, *step_sums;
};

void what_if_init(struct what_if *what_if, const struct plan *plan,
                  const struct oracle *oracle);
void what_if_release(struct what_if *what_if);

/* Returns the step time of the plan with this edit, or INFINITY if the oracle
 * gives no finite one. The parts per GPU are in *what_if until the next call.
 * The oracle must be able to price the kinds of the shards. */
double what_if_step(struct what_if *what_if, const struct edit *edit);

/* Returns the step time of a plan without each table, as what_if_step gives it:
 * [n_tables], in the arena. */
const double *what_if_without(const struct plan *plan,
                              const struct oracle *oracle, struct arena *arena);

/* Returns true if each GPU that gets a shard has enough memory. O(shards of the
 * edit). */
bool what_if_fits(struct what_if *what_if, const struct edit *edit);

/* Makes the plan with this edit, in the arena: kinds derived, priced, but not
 * checked by plan_check. ERR_INPUT as for plan_price. */
int what_if_apply(struct plan *out, const struct what_if *what_if,
                  const struct edit *edit, struct arena *arena,
                  struct err *err) MUST_CHECK;

#endif
