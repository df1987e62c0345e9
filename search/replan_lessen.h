/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_REPLAN_LESSEN_H
#define NEUROSHARD_SEARCH_REPLAN_LESSEN_H

#include "search/homes.h"
#include "search/replan.h"
#include "search/watch.h"

/*
 * What the parts of search_replan share; and how a plan that was found comes to
 * move less.
 */

struct replan {
    const struct search_options *options;
    struct watch watch;
    const struct oracle *oracle; /* watched */
    struct arena *scratch;
    struct units units;
    struct parts parts;
    struct homes homes;
    struct snapshot nearest; /* to the old plan: replan_start.h */
    struct snapshot best;
    double best_excess; /* 0 where it keeps all limits */
    double start_ms;    /* by the clock */
    uint64_t n_priced;
    const char *stopped;
};

/* Sets the true total; returns the excess. */
double replan_price(struct replan *replan, struct snapshot *snapshot);
/* What it moves. */
uint64_t replan_bytes(const struct replan *replan,
                      const struct snapshot *snapshot);
/* Prices, and keeps it where it is the best: the one with the least excess, or
 * of those that keep all limits the one with the least total. */
void replan_offer(struct replan *replan, struct snapshot *snapshot);
/* Anneals from these, offers what it finds; effort_frac: of the effort asked
 * for. */
void replan_anneal(struct replan *replan, const struct snapshot *starts,
                   unsigned n_starts, double effort_frac);

/* The best moves less, as long as its total stays within most_ms and it exceeds
 * no memory: first each unit by itself goes back, then the annealing is asked
 * for as good a plan under ever lower limits, at effort_frac each. */
void replan_lessen(struct replan *replan, double most_ms, double effort_frac);

/* ERR_NO_PLAN: the limit, what the best moves, and why so much. */
int replan_too_little(const struct replan *replan, struct err *err) MUST_CHECK;

#endif
