/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_WALKS_H
#define NEUROSHARD_SEARCH_WALKS_H

#include "base/parallel.h"
#include "search/anneal.h"

/*
 * A fixed number of chains (search/anneal.h), walked on all threads, by either
 * of two schedules. Annealing goes deep, tempering comes out of any hole: it
 * wants many steps a table, as layouts must find their way from the hottest
 * chain to the coldest.
 *
 * Schedules hang on work, not on the clock, and what a chain does hangs on the
 * seed alone: any number of threads comes to the same layouts.
 */

#define WALKS_CHAINS 8

struct walks {
    struct pool *pool; /* not owned; may be NULL */
    struct bundle bundles[WALKS_CHAINS];
    unsigned n_bundles;
    struct chain *chains[WALKS_CHAINS]; /* of the bundles; tempering keeps them
                                           in order, the coldest first */
    struct rng rng;                     /* of exchanges */
    uint64_t n_round_steps;             /* of this round, of each chain */
    double cooling;
    /* Asked between rounds, some 10^4 steps or fewer apart, with the steps that
     * each chain has done in this cycle. */
    bool (*goes_on)(void *ctx, uint64_t n_done);
    void *ctx;
};

/* The caller sets goes_on and ctx then. */
void walks_open(struct walks *walks, const struct parts *parts,
                struct pool *pool, uint64_t seed);
void walks_close(struct walks *walks); /* zeroed walks are fine */
/* Layouts priced since. */
uint64_t walks_priced(const struct walks *walks);

/* All chains go on from these, in turn. */
void walks_start(struct walks *walks, const struct snapshot *starts,
                 unsigned n_starts);
/* One of them goes on from this, and may move so much (struct layout). */
void walks_start_chain(struct walks *walks, unsigned chain,
                       const struct snapshot *from, uint64_t move_limit_bytes);
/* The best layout of all chains since they started; less excess is better than
 * a lower total. Not owned. */
struct snapshot *walks_best(const struct walks *walks);

/* Simulated annealing: all chains alike, from hot_frac of the best total down
 * to near nothing. False where goes_on said so. */
bool walks_anneal(struct walks *walks, uint64_t n_steps, double hot_frac);

/* Parallel tempering (Swendsen and Wang 1986; Geyer 1991): each chain at a
 * temperature of its own, the hottest at hot_frac of the best total, and
 * neighbours exchange temperatures as Metropolis' rule has it. */
bool walks_temper(struct walks *walks, uint64_t n_steps, double hot_frac);

#endif
