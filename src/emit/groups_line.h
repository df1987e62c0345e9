/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_GROUPS_LINE_H
#define NEUROSHARD_EMIT_GROUPS_LINE_H

#include "core/plan.h"

/* Lines of reports about sharding groups (core/sharding_groups.h). */

/* A number of groups that would shorten the step of a plan with one group. */
struct groups_estimate {
    uint32_t count;      /* number of groups; 0: none would */
    uint64_t sync_every; /* least interval between syncs at which they pay */
};
/* Returns the least interval between syncs, in steps, at which groups with this
 * sync and this step are faster than a step of one_ms. Returns 0 if no interval
 * is long enough. */
uint64_t groups_pay_from(double sync_ms, double step_ms, double one_ms);

/* Prints "2 groups pay from one sync in 190 steps; training changes: ...". */
void emit_groups_estimate(const struct groups_estimate *estimate,
                          struct buf *out);
/* Prints the groups of a plan and the time of their sync, without a line break:
 * "2 contiguous groups of 8 GPUs; a sync of 44.8 GB takes 942 ms, ..." */
void emit_groups_line(const struct plan *plan, struct buf *out);
/* Prints that all groups have the plan that is shown, and the ranks of its GPUs
 * in the job, without a line break. Lines are indented by 8. */
void emit_groups_ranks(const struct plan *plan, struct buf *out);
/* Prints the line "groups" with emit_groups_ranks; nothing if there is one
 * group. */
void emit_groups_equal(const struct plan *plan, struct buf *out);
/* Prints how groups change training, without a line break. */
void emit_groups_training(uint32_t count, struct buf *out);

#endif
