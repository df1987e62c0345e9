/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_REPLAN_H
#define NEUROSHARD_SEARCH_REPLAN_H

#include "search/movement.h"
#include "search/search.h"
#include "search/watch.h"

/*
 * A plan to replace another: for new tables, tables that grew or shrank, other
 * GPUs or changed loads, with little movement. What moves is counted as
 * core/plan_moves.h does; tables and rows that are new are no movement.
 */

struct replan_point {
    uint64_t moved_bytes;
    double total_ms;
};
struct replan_report {
    /* The old plan as it stands, with the tables of today: grown in place, what
     * has no place beside it; and whether that fits. */
    struct replan_point standing;
    bool standing_fits;
    /* What movement buys: bytes rise, totals fall, each by a ten-thousandth at
     * least. In the arena; filled where the plan is found. */
    struct replan_point *front; /* [n_front] */
    size_t n_front;
};

/*
 * One search, whatever the limit, looks for layouts of which none both moves
 * and costs more than another, and the limit picks the cheapest that moves no
 * more: so more movement never makes a plan worse. It starts from the old plan
 * grown in place (search/movement.h) and from what search_full finds, with
 * its GPUs named such that little moves; it anneals without a limit, then under
 * limits that rise from nothing to what the cheapest layout moves; and what it
 * finds goes back home unit by unit. Takes two to three times what search_full
 * does, and without a limit costs no more, to a ten-thousandth.
 *
 * Where a GPU holds more under the old plan, with the tables of today, than its
 * reserve leaves, it may go on to, but never more than that or than it has:
 * under a limit, and where nothing is found else. plan->problem then has so
 * much less reserve there.
 *
 * plan->search is "replan"; report may be NULL. ERR_NO_PLAN also where nothing
 * was found within the limit: the sentence says how much movement would do, and
 * how much of it is of GPUs that are gone and of tables cut by rows into equal
 * blocks. `from` has passed plan_check.
 */
int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options,
                  struct replan_report *report, struct arena *arena,
                  struct err *err) MUST_CHECK;

/* --- what it is made of --- */

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
