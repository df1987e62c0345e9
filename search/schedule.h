/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SCHEDULE_H
#define NEUROSHARD_SEARCH_SCHEDULE_H

#include "search/temper.h"

/*
 * Schedule of the full search: which assignments are annealed and tempered, for
 * how many steps, in what order, and when it is enough.
 *
 * Each starting point is annealed first, then the best of them for longer.
 * Stages follow. Each stage is twice as long as the stage before and begins
 * from the best assignment so far. So a long search begins exactly as a short
 * one, and its plan is never dearer. Searches with few steps per unit begin
 * with the stages.
 */
struct schedule {
    /* inputs, not owned; set by the caller before schedule_init */
    struct search_space *space; /* the schedule replaces its tuning */
    struct pool *pool;          /* may be NULL */
    uint64_t seed;
    uint64_t effort;         /* changes to try; SEARCH_EFFORT_AUTO: until stages
                                gain little */
    struct snapshot *starts; /* [STARTS_KEPT] starting points; some may be
                                empty; replaced by their annealed form */
    goes_on_fn *goes_on;     /* returns whether to go on; n_done counts from
                                the last end of a cycle (n_before) */
    void *ctx;
    /* inputs; set by the caller before schedule_run */
    /* lower bound on the total; NAN if no bound is known */
    double bound_ms;
    bool is_given;       /* the start is a plan that was searched already: it is
                            not annealed alone, and the stages fit the effort */
    double published_ms; /* total that stages must get below, or INFINITY */

    /* Best assignment so far. No chain ended with a better one. Empty before
     * schedule_run. */
    struct snapshot best;
    struct temper temper;
    struct snapshot tempered[TEMPER_CHAINS]; /* states of the chains when
                                                tempering last ended */
    /* Steps of each chain: so far; in the default budget; in the largest. */
    uint64_t n_before, usual_steps, max_steps;
    double annealed_ms; /* best total of the annealed starts, or INFINITY if it
                           is not used */
    struct tuning tuning;    /* parameters of short walks */
    struct tuning long_walk; /* parameters of long walks */
};

/* Sets budgets and weights for the problem of schedule->space. */
void schedule_init(struct schedule *schedule);
/* Runs the schedule from `start` until it is enough or goes_on returns false.
 * schedule->best has the result. */
void schedule_run(struct schedule *schedule, const struct snapshot *start);
/* Frees the chains and snapshots; accepts a zeroed struct. */
void schedule_release(struct schedule *schedule);

#endif
