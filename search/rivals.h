/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_RIVALS_H
#define NEUROSHARD_SEARCH_RIVALS_H

#include "core/oracle.h"
#include "core/plan.h"

/*
 * The planners that users have today, by their published rules, to be compared
 * with. Each places by its own costs, whatever prices the plan afterwards, and
 * within the problem's memory as everything here counts it.
 */

struct rival_inputs {
    const struct oracle *oracle;   /* what prices the plan: no shard is made
                                      that it cannot price */
    const struct oracle *torchrec; /* TorchRec's costs: additive, one term,
                                      rows over all ranks or a host's */
    double limit_ms; /* of wall-clock; the best so far is given. 0: none */
};

/* Fills a plan whose problem is set, as search_reference does
 * (search/search.h); plan_price prices it. ERR_NO_PLAN where the rule finds
 * none, or knows no pins or groups and there are some. */
struct rival {
    const char *name;
    int (*place)(struct plan *plan, const struct rival_inputs *inputs,
                 struct arena *arena, struct err *err);
};
/*
 * NULL-name-terminated, after search_baselines (search/search.h):
 *
 *   torchrec   TorchRec's greedy proposer (by the largest shard, by the sum)
 *              and its uniform one over its sharding types, in device memory
 *              only; each proposal is placed by its greedy partitioner
 *   hugectr    the planner of HugeCTR's DLRM sample at its settings: small
 *              tables replicated, hot ones halved and halved again, twenty
 *              greedy rounds; cuts by columns where the oracle prices no such
 *              rows
 */
const struct rival *search_rivals(void);

/* The single ones. */
int rival_torchrec(struct plan *plan, const struct rival_inputs *inputs,
                   struct arena *arena, struct err *err) MUST_CHECK;
int rival_hugectr(struct plan *plan, const struct rival_inputs *inputs,
                  struct arena *arena, struct err *err) MUST_CHECK;

/* ERR_NO_PLAN where a table is pinned or in a group: the planner named cannot
 * be told so. */
int rival_check_constraints(const struct problem *problem, const char *planner,
                            struct err *err) MUST_CHECK;

#endif
