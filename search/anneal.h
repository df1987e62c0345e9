/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_ANNEAL_H
#define NEUROSHARD_SEARCH_ANNEAL_H

#include "search/propose.h"
#include "search/snapshot.h"

/*
 * Simulated annealing (Kirkpatrick, Gelatt, Vecchi 1983) of several layouts in
 * lock-step: each proposes a change, all proposals are priced in one batch,
 * each is accepted or not. What a chain does hangs on its own draws and
 * temperature alone, so neither batches nor threads change the outcome.
 */

struct chain {
    struct layout layout;
    struct trial trial;
    struct rng rng;
    double temperature_ms; /* 0 until the caller sets it */
    struct snapshot best;
    double best_excess;               /* of `best`: 0 once it keeps all limits;
                                         less excess is better than a lower
                                         total */
    bool is_saved;                    /* the layout is no better than `best` */
    double most_ms[ORACLE_MAX_TERMS]; /* the largest terms when it started */
};

struct bundle {
    const struct parts *parts; /* not owned */
    uint32_t n_chains;
    struct chain *chains; /* [n_chains] */
    /* Where comm prices: sums[n][R][width] as of the trials, and so on. */
    double *sums, *compute_ms, *fwd_ms, *bwd_ms;
    double *rows, *rows_ms; /* touched devices, gathered */
    size_t rows_capacity;
    uint64_t n_priced;
};

/* Changes to try in all: as many as asked for; where that is
 * SEARCH_EFFORT_AUTO, by the number of units, fewer where they are cheap. */
uint64_t anneal_effort(const struct parts *parts, uint64_t asked);

void bundle_init(struct bundle *bundle, const struct parts *parts,
                 uint32_t n_chains, uint64_t seed, uint32_t first_chain);
void bundle_release(struct bundle *bundle);

/* Every chain goes on from this layout. */
void bundle_start(struct bundle *bundle, uint32_t chain,
                  const struct snapshot *from);

/* n_steps of each chain; its temperature is multiplied by `cooling` after each
 * step. */
void bundle_anneal(struct bundle *bundle, uint64_t n_steps, double cooling);

/* What the chain lowers, of the layout as it is: the total, and what memory it
 * exceeds. */
double chain_energy_ms(const struct chain *chain);
/* Whether its best is better than the other's. */
bool chain_is_better(const struct chain *chain, const struct chain *other);

#endif
