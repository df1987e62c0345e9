/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CHECKED_ORACLE_H
#define NEUROSHARD_SEARCH_CHECKED_ORACLE_H

#include "core/oracle.h"
#include "core/plan.h"

#include <stdatomic.h>

/*
 * A checked oracle passes all calls on to a cost model, and notes if an answer
 * of the cost model is not finite. A search asks the cost model from many
 * places and threads and compares the answers, so a NaN would silently lose or
 * win a comparison.
 */

struct checked_oracle {
    struct oracle base;          /* the checked oracle, which the search asks */
    const struct oracle *oracle; /* the cost model, which answers; not owned */
    atomic_bool *is_bad;   /* set if an answer of the cost model was not finite;
                              points to `noted` */
    atomic_bool noted;     /* an answer of the cost model was not finite */
    struct oracle_ops ops; /* functions of `base`, the checked oracle */
    double start_ms;       /* clock time at which the search began */
};

/* Initialises a checked oracle. The struct must not be moved afterwards. */
void checked_oracle_init(struct checked_oracle *checked,
                         const struct oracle *oracle);
/* Returns the time on clock_ms() at which a search that began with
 * checked_oracle_init has used limit_ms milliseconds (0: no limit, INFINITY).
 */
double search_end_ms(const struct checked_oracle *checked, double limit_ms);
/* Returns why the search has to stop: "done" if an answer of the cost model was
 * not finite, "interrupt", or "time" if limit_ms milliseconds have passed since
 * the search began (0: no limit). Returns NULL if the search may go on. */
const char *stop_reason(const struct checked_oracle *checked, double limit_ms);
/* Fails with ERR_INPUT if an answer of the cost model was not finite. */
int checked_oracle_check(const struct checked_oracle *checked,
                         struct err *err) MUST_CHECK;
/* Finishes a plan whose shards are set: runs checked_oracle_check, derives the
 * kinds of the shards, sets the costs and runs plan_check. If plan->bound_ms is
 * above 0, it must be a lower bound of the cost by this oracle. */
int checked_oracle_finish(const struct checked_oracle *checked,
                          struct plan *plan, struct arena *arena,
                          struct err *err) MUST_CHECK;

#endif
