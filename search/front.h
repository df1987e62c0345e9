/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FRONT_H
#define NEUROSHARD_SEARCH_FRONT_H

#include "search/movement.h"
#include "search/replan.h"
#include "search/trial.h"
#include "search/watch.h"

/*
 * What the parts of search_replan share: the front, to which all that is found
 * is offered, and the layout in hand.
 */

/* Layouts that fit, none of which both moves and costs more than another: the
 * bytes rise, the totals fall. Where there are too many the one goes that gains
 * least, but never the first or the last. */
#define FRONT_MAX 64
struct front {
    struct front_point {
        uint64_t moved_bytes;
        struct snapshot layout; /* priced, owned */
    } points[FRONT_MAX + 1];
    uint32_t n;
};

/* Whether it would be one of the front. */
bool front_wants(const struct front *front, uint64_t moved_bytes,
                 double total_ms);
/* The front must want it; it is copied. */
void front_add(struct front *front, uint64_t moved_bytes,
               const struct snapshot *layout);
/* The cheapest that moves at most so much, or NULL. */
const struct front_point *front_within(const struct front *front,
                                       uint64_t limit_bytes);
/* Leaves out what gains less than that share of its total. */
void front_thin(struct front *front, double gain_frac);
void front_release(struct front *front);

struct replan {
    const struct search_options *options;
    struct watch watch;
    const struct oracle *oracle; /* watched */
    struct arena *scratch;
    struct homes homes;
    struct parts parts;
    struct snapshot nearest; /* to the old plan: carry_over.h */
    uint64_t least_bytes;    /* that it moves */
    struct tryout tryout;    /* the layout in hand */
    struct snapshot offered; /* room of replan_offer_layout */
    struct front front;
    double start_ms; /* by the clock */
    uint64_t n_priced;
    const char *stopped;
};

/* Offers the layout in hand to the front; whether that wanted it. */
bool replan_offer_layout(struct replan *replan);

/* The layout in hand goes towards the old plan: units back to where they stand,
 * the ones first that cost least a byte. All on the way is offered. */
void replan_lessen(struct replan *replan);

/* ERR_NO_PLAN: the limit, the least movement found, and why so much. */
int replan_refuse(struct replan *replan, uint64_t limit_bytes,
                  struct err *err) MUST_CHECK;

#endif
