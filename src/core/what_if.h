/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_WHAT_IF_H
#define NEUROSHARD_CORE_WHAT_IF_H

#include "core/plan.h"

/*
 * What a plan would come to if some of its shards were others. An edit takes
 * shards away and puts shards in; what_if_step prices it in O(R) and one comm,
 * which is enough to rank thousands, and what_if_apply makes a plan of it,
 * priced as any plan is. The two agree to rounding.
 */

struct edit {
    const size_t *gone; /* [n_gone], indices into the plan's shards */
    size_t n_gone;
    struct shard *come; /* [n_come]; their kinds must be right */
    size_t n_come;
};

struct what_if {
    const struct plan *plan;     /* not owned; shards in order, its memory
                                    counted where that is asked for */
    const struct oracle *oracle; /* not owned */
    struct arena arena;          /* owned; has all that follows */
    double *vectors;             /* [n_shards][width] */
    double *sums;                /* [R][width] */
    uint64_t *edited_bytes;      /* [R]: taken of those that get a shard */
    /* Of the step priced last: [R] each, and sums [R][width]. */
    double *compute_ms, *bwd_comm_ms, *fwd_comm_ms, *step_sums;
};

void what_if_init(struct what_if *what_if, const struct plan *plan,
                  const struct oracle *oracle);
void what_if_release(struct what_if *what_if);

/* The total of the plan with this edit, INFINITY where the oracle gives no
 * finite one; the parts by GPU are in what_if until the next call. The oracle
 * must be able to price its kinds. */
double what_if_step(struct what_if *what_if, const struct edit *edit);

/* The total of a plan, as above, without each table: [n_tables], in the arena.
 */
const double *what_if_without(const struct plan *plan,
                              const struct oracle *oracle, struct arena *arena);

/* Whether each GPU that gets a shard has the memory for it. O(shards of the
 * edit). */
bool what_if_fits(struct what_if *what_if, const struct edit *edit);

/* The plan with this edit, in the arena: kinds derived, priced, not judged
 * (plan_check does). ERR_INPUT as plan_price. */
int what_if_apply(struct plan *out, const struct what_if *what_if,
                  const struct edit *edit, struct arena *arena,
                  struct err *err) MUST_CHECK;

#endif
