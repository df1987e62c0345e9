/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_PRICE_H
#define NEUROSHARD_CORE_PLAN_PRICE_H

#include "core/what_if.h"

/* Complete prices of plans. */

/*
 * Predicts the costs of the plan by the oracle, and computes the memory that
 * each device uses by the memory model of plan->problem.
 *
 * Fills devices, shard_ms, total_ms, exposed_ms, n_floored and cost. Embeds
 * each shard once, sums the vectors of the shards of each device in the
 * canonical order of tables, and applies head (core/oracle.h) once per device
 * and comm once. bound_ms becomes NAN, because an earlier bound was proven for
 * other costs. If total_ms changes, `wire` becomes empty, because its regrets
 * are of the earlier total. Allocates devices and shard_ms in the arena.
 *
 * Returns ERR_INPUT if the oracle cannot price a shard's kind or row cut, or if
 * a cost is NaN or infinite.
 */
int plan_price(struct plan *plan, const struct oracle *oracle,
               struct arena *arena, struct err *err) MUST_CHECK;

/* Fills *out with the plan after this edit, in the arena. Sets the kinds of the
 * shards and prices the plan, but does not check it by plan_check. Returns
 * ERR_INPUT if plan_price returns ERR_INPUT. */
int plan_price_edit(struct plan *out, const struct what_if *what_if,
                    const struct edit *edit, struct arena *arena,
                    struct err *err) MUST_CHECK;

#endif
