/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_ADVICE_H
#define NEUROSHARD_SEARCH_ADVICE_H

#include "search/search.h"

/*
 * The plan that is recommended: not always the cheapest one, because a gain
 * within the error of the cost model is no reason to complicate a job.
 *
 * Plans are ordered by
 *
 *     1. the step time if the dense part is known, and otherwise GPU work,
 *        because a dense part will hide the host
 *     2. whether training is unchanged (kind_changes_training)
 *     3. fewer kinds of sharding (core/host.h)
 *     4. fewer pieces
 *
 * A difference within the error of the ratio of two totals does not count. The
 * error is always that of the ratio to the cheapest plan, so errors of several
 * choices do not add up.
 *
 * If the dense part is unknown, the host may be hidden or not. Two rules keep a
 * plan good in both cases:
 *
 *     - A change of training must make the longer of host and GPU work shorter.
 *       GPU work below the time of the host may buy nothing.
 *     - A further kind of sharding must save more GPU work, in case the host is
 *       hidden, than it lengthens the step, in case it is not, both as shares.
 *
 * If the caller gives options->simplest_frac, it replaces the error. Then the
 * simplest of all plans found (search/simplicity.h) is recommended whose total
 * is within that share of the cheapest one. Neither the step nor the rules
 * above count. Without a time limit, a larger share never gives a less simple
 * plan.
 *
 * If the bandwidth of the wire is an assumption, another plan may replace the
 * recommended one (search/wire_choice.h).
 */

/* A plan without some shardings that the cheapest plan uses. */
struct alternative {
    /* the shardings that it lacks, such as "changes of training" or "row cuts"
     */
    const char *without;
    struct priced_parts priced; /* GPU work; INFINITY if no plan was found */
    double step_ms;             /* step; INFINITY if no plan was found */
    bool keeps_training;        /* it does without all changes of training */
    bool is_chosen;             /* the recommended plan does without, too */
};
#define MOST_ALTERNATIVES 5
struct advice {
    struct priced_parts cheapest; /* the cheapest plan found */
    double error_frac; /* error of a ratio of GPU work; 0 if unknown */
    struct alternative list[MOST_ALTERNATIVES]; /* [n], in the order in which
                                                   they were tried */
    size_t n;
};

/*
 * Finds the recommended plan. Runs search_full, which simplifies its plan
 * within the error (options->simplest_frac), and then searches without
 * shardings that this plan uses; with a share also without each of them and
 * without changes of training. Each of these searches tries a fifth of the
 * changes that the first one tried, at most.
 *
 * Fills the plan as search_full does, and *advice. n_evaluations counts all
 * searches; bound_ms and stopped are those of the first one.
 */
int search_advised(struct plan *plan, const struct oracle *oracle,
                   const struct search_options *options, struct advice *advice,
                   struct arena *arena, struct err *err) MUST_CHECK;

#endif
