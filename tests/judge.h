/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_JUDGE_H
#define NEUROSHARD_TESTS_JUDGE_H

/*
 * What is asked of every plan, whoever made it: that it can be priced, and that
 * plan_check has nothing to say.
 */

#include "base/clock.h"
#include "core/plan_check.h"
#include "tests/tap.h"

/* 0 for a legal plan, which has its kinds and costs then; its bound stays. */
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

/* A search that was asked for then has taken no longer than until now. */
__attribute__((unused)) static void judge_time(const struct plan *plan,
                                               double begin_ms)
{
    if (!(plan->search_ms >= 0 && plan->search_ms <= clock_ms() - begin_ms))
        ok(0, "%g ms of search, in a call of less", plan->search_ms);
}

/* Total of the legal plan of a search that returned rc; INFINITY where it found
 * none, NAN and a failed test where it or the judge has anything else to say.
 */
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
