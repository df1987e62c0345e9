/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_WIRE_CHOICE_H
#define NEUROSHARD_SEARCH_WIRE_CHOICE_H

#include "search/search.h"

/*
 * Choice of a plan if the bandwidth of the wire is an assumption.
 *
 * The wire is the link between hosts, or inside the host if there is one host.
 * Plans are judged by their regret at the shares wire_shares of the assumed
 * bandwidth (search/wire_rule.h).
 *
 * Choices:
 *
 *   WIRE_NOMINAL  the plan that is recommended at the assumed bandwidth
 *   WIRE_LIMITED  the plan with the least worst regret among those that are at
 *                 most WIRE_LIMIT_FRAC dearer at the assumed bandwidth than the
 *                 recommended one (or the error of the ratio, if that is less),
 *                 have no more kinds of sharding, and change the training of no
 *                 more tables. If it has more pieces, its gain at the bandwidth
 *                 of the worst regret must be beyond the error of the ratio.
 *   WIRE_ROBUST   the plan with the least worst regret of all (minimax)
 *
 * Candidates of WIRE_LIMITED are the plans of three searches that start from
 * the recommended plan: the best plan at each slower wire, which is also what
 * regrets are relative to, and the least worst regret (search/wire_oracle.h).
 * Each search sees the neighbours of its start first, and also starts from the
 * plans of the searches before it.
 *
 * WIRE_ROBUST finds starting points anew for each of the three, and at the
 * bandwidths wires_between. Then it searches at each wire, and once more for
 * the least worst regret, from the best of all of these plans: of HugeCTR's 200
 * tables on 32 GPUs only the starting points at 0.4 of the bandwidth lead to
 * the plan that is the best one at all three wires.
 *
 * Each search tries at most the share WIRE_EFFORT_FRAC, or with WIRE_ROBUST the
 * share WIRE_ROBUST_FRAC, of the changes that the search for the recommended
 * plan tried. With a tenth between the wires the worst regret on NVIDIA's small
 * list was 0.3 % instead of 0.
 */
#define WIRE_EFFORT_FRAC 0.02
#define WIRE_ROBUST_FRAC 0.5
extern const char *const wire_choice_names[]; /* NULL-terminated */

/*
 * Replaces the recommended plan by that of options->wire, and sets plan->wire.
 * Does nothing if the choice is WIRE_NOMINAL, if options->slower is NULL, if
 * the caller gives options->simplest_frac, or if the plan has no exchange. Does
 * nothing either if each search might try fewer changes than there are tables,
 * because its setup alone would take longer than its changes.
 *
 * `plan` is priced by `oracle`; its problem is that of `problem`, perhaps with
 * fewer shardings, which the candidates of WIRE_LIMITED keep to. *best_ms is
 * the total of the cheapest plan known; it falls if a cheaper one is found.
 * end_ms is the time on clock_ms() at which the searches end, or INFINITY. The
 * searches also end at an interrupt. options->overhead is the overhead of a
 * search; NULL: no overhead. If the searches have no time left for it,
 * plan->wire stays empty, and plan->stopped becomes "time".
 */
int wire_choose(struct plan *plan, const struct problem *problem,
                const struct oracle *oracle,
                const struct search_options *options, double *best_ms,
                double end_ms, struct arena *arena, struct err *err) MUST_CHECK;

#endif
