/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FINISH_H
#define NEUROSHARD_SEARCH_FINISH_H

#include "search/state.h"

#include <stdatomic.h>

/* What every search does around the search itself. */

/*
 * A cost model under watch. A search asks from many places and threads, and
 * compares what it hears: an answer that is no number would just lose, or win.
 * So it asks by way of this, which notes whether any answer was not finite.
 */

struct watch {
    struct oracle base;          /* what the search asks */
    const struct oracle *oracle; /* what answers; not owned */
    atomic_bool *is_bad;         /* &noted */
    atomic_bool noted;
    struct oracle_ops ops; /* of base */
    double start_ms;       /* when the search began, by the clock */
};

/* Must stay where it is from then on. */
void watch_init(struct watch *watch, const struct oracle *oracle);
/* Why the search stops: "done" where an answer was not finite, "interrupt", or
 * "time" after so long, 0 for no limit; NULL: it goes on. */
const char *watch_stops(const struct watch *watch, double limit_ms);
/* ERR_INPUT, and says so, where an answer was not finite. */
int watch_check(const struct watch *watch, struct err *err) MUST_CHECK;
/* Ends the search, of a plan with shards whose bound_ms, where it is above 0,
 * is of this oracle: that check, kinds, prices, judgement. */
int watch_finish(const struct watch *watch, struct plan *plan,
                 struct arena *arena, struct err *err) MUST_CHECK;

/*
 * A layout that is good already, made better by single moves and swaps, the
 * best one at a time: deterministic, and of bounded work.
 */

/* Until the total is most_ms or nothing lowers it. By memory: off the device
 * that is fullest by its share of room, as long as that lowers the largest
 * share and the total stays as it is. Returns how many changes were priced. */
uint64_t settle(struct snapshot *snapshot, const struct parts *parts,
                bool by_memory, double most_ms);

/* A unit becomes whole, pieces of it become one, or it is cut otherwise into
 * fewer, as long as the step that the job waits for rises by no more than this
 * share of it, the memory suffices and no more moves than that: what costs
 * little goes first, and in between what is left settles. Of what is walked
 * through, which is the same whatever the share, it is the layout of the fewest
 * pieces, then the cheapest: a larger share has no more, and of as many costs
 * no more. Nothing is done for a share of 0. Returns how many changes were
 * priced. */
uint64_t simplify(struct snapshot *snapshot, const struct parts *parts,
                  double rise_frac, uint64_t move_limit_bytes);

#endif
