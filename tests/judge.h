/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_JUDGE_H
#define NEUROSHARD_TESTS_JUDGE_H

/*
 * Checks for every plan, whichever search or file it comes from: it can be
 * priced, and plan_check accepts it.
 */

#include "base/clock.h"
#include "core/plan_check.h"
#include "core/plan_price.h"
#include "tests/tap.h"

/* Derives the plan's shard kinds and costs and checks it; keeps its lower
 * bound. Returns 0 if the plan is legal. */
__attribute__((unused)) static int judge_plan(struct plan *plan,
                                              const struct oracle *oracle,
                                              struct arena *arena,
                                              struct err *err)
{
    double bound_ms = plan->bound_ms;

    plan_derive_kinds(plan);
    if (plan_price(plan, oracle, arena, err))
        return -1;
    plan->bound_ms = bound_ms;
    plan->version = "0";
    plan->inputs_hash = plan_inputs_hash(plan, arena);
    return plan_check(plan, err);
}

/* Fails a test if the search claims more time than has passed since
 * `begin_ms`. */
__attribute__((unused)) static void judge_time(const struct plan *plan,
                                               double begin_ms)
{
    if (!(plan->search_ms >= 0 && plan->search_ms <= clock_ms() - begin_ms))
        ok(0, "%g ms of search, in a call of less", plan->search_ms);
}

/* Returns the total of the plan that a search with return code `rc` found, in
 * ms. Returns INFINITY if the search found no plan. Any other error, or a plan
 * that is not legal, fails a test and returns NAN. */
__attribute__((unused)) static double judged_total(struct plan *plan, int rc,
                                                   const struct oracle *oracle,
                                                   struct arena *arena,
                                                   struct err *err)
{
    if (rc && err->code == ERR_NO_PLAN)
        return INFINITY;
    if (!rc && !judge_plan(plan, oracle, arena, err))
        return plan->total_ms;
    ok(0, "a legal plan: %s", err->msg);
    return NAN;
}

#endif
