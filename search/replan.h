/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_REPLAN_H
#define NEUROSHARD_SEARCH_REPLAN_H

#include "search/bound.h"
#include "search/checked_oracle.h"
#include "search/evaluator.h"
#include "search/front.h"
#include "search/search.h"

/* State of search_replan. */
struct replan {
    const struct search_options *options;
    const struct plan *from;
    uint64_t limit_bytes;
    struct plan *plan; /* receives the plan found */
    struct replan_report *report;
    struct checked_oracle checked;
    struct arena scratch;
    struct current_plan current; /* the current plan */
    struct search_space space;
    struct tuning tuning; /* tuning of the space if options->reshardable */
    struct proven bound;
    /* assignment nearest to the current plan, by carry_over */
    struct snapshot nearest;
    struct evaluator evaluator; /* holds the current assignment of the search */
    struct front front;
    /* best gain of this cycle. The gain of a new point is the share by which it
     * is cheaper than the cheapest older point with no more migration; INFINITY
     * if there was no such older point */
    double gain;
};

/* Offers the assignment of replan->evaluator to the front. Returns true if the
 * front took it. */
bool replan_offer_assignment(struct replan *replan);

/* Moves the assignment of replan->evaluator back towards the current plan, one
 * unit after the other. Each step places one unit as it is in the current plan.
 * Units whose return costs least per byte of migration saved come first. Offers
 * the assignment after every step to the front. */
void replan_lessen(struct replan *replan);

#endif
