/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PLANNERS_H
#define NEUROSHARD_SEARCH_PLANNERS_H

#include "search/contender.h"

/*
 * Planners to compare with each other: the published baselines, the planners
 * that users have today by their published rules, and ours. Each planner
 * decides by its own costs, whichever oracle prices the plan afterwards. All
 * planners have to keep the memory limits of the problem by its memory model.
 */

/*
 * All planners. The last entry has a NULL name.
 *
 *   random, dim, lookup, size, size-lookup
 *              the published baselines, which place whole tables by one figure
 *   torchrec   TorchRec's greedy proposer (by the largest shard, by the sum)
 *              and its uniform proposer over its sharding types, in device
 *              memory only; its greedy partitioner places each proposal
 *   hugectr    the planner of HugeCTR's DLRM sample at its settings: small
 *              tables are replicated, hot ones are halved repeatedly, and
 *              twenty greedy rounds place them; it cuts by columns if the
 *              oracle cannot price its row shards
 *   host-large, cache-large, cache-all, cache-rows, scale-up
 *              rules for tables in host memory (search/planner_offload.c), only
 *              if the cluster has such memory
 *   reference  search_reference
 *   neuroshard search_full
 */
extern const struct contender search_contenders[];
/* Returns whether a planner is for problems like this one: whether it needs no
 * host memory for tables, or there is some. */
bool contender_is_for(const struct contender *self,
                      const struct problem *problem);
/* Runs a planner. Fills the same members of a plan as search_reference;
 * plan->problem must be set. Fails with ERR_NO_PLAN if the rule finds no plan,
 * or if the problem has pins or groups and the planner does not support
 * them. */
int contender_place(struct plan *plan, const struct contender *self,
                    const struct contender_inputs *inputs, struct arena *arena,
                    struct err *err) MUST_CHECK;

/* Result of one planner. */
struct rival {
    const struct contender *by;
    struct plan plan; /* plan of the planner; its total_ms is INFINITY if there
                         is no plan */
    const char *why_not; /* only if there is no plan: the reason in one
                            sentence, in the arena */
};
/* Runs a planner and stores its plan, or the reason why it has no plan. It is
 * not an error if the planner finds no plan or cannot plan such tables. All
 * other failures are errors. */
int rival_ask(struct rival *rival, const struct contender *by,
              const struct problem *problem,
              const struct contender_inputs *inputs, struct arena *arena,
              struct err *err) MUST_CHECK;

/* Results of all planners except those of this program. The full search starts
 * from their plans, and its own plan is compared with them. */
#define N_RIVALS 12
struct rivals {
    struct arena *arena;         /* holds the plans of the planners */
    struct rival list[N_RIVALS]; /* in the order of search_contenders; `by` is
                                  NULL if the planner was not run */
};
/* Runs all planners except those of this program on the problem. TorchRec's
 * planner has the limit RIVAL_EFFORT, and is not run on more than
 * RIVAL_MOST_TABLES tables. A planner that would begin after
 * inputs.end_ms has no plan, and the time limit is its reason. If end_ms is not
 * 0, an interrupt is a reason, too. */
int rivals_ask(struct rivals *rivals, const struct problem *problem,
               struct contender_inputs inputs, struct err *err) MUST_CHECK;
/* Limit for TorchRec's planner: number of proposals times number of tables. It
 * takes about 40 ms. */
#define RIVAL_EFFORT 1500000
/* Most tables for TorchRec's planner. It cuts long lists into very many pieces:
 * pricing its plan of 200,000 tables on 64 GPUs takes 20 s and 1.5 GB. */
#define RIVAL_MOST_TABLES 50000

#endif
