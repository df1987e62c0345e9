/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_TUNING_H
#define NEUROSHARD_SEARCH_TUNING_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How a full search (search/full.c) goes about: what it proposes how often,
 * what it heeds. All in one place, so that each part can be switched off by
 * itself and what it buys be measured (tests/bench/bench_ablation.c).
 */

/* Changes of a layout: search/moves.h. */
enum change_kind {
    CHANGE_MOVE,
    CHANGE_SWAP,
    CHANGE_TRADE,
    CHANGE_SPLIT,
    CHANGE_MERGE,
    CHANGE_RESPLIT,
    N_CHANGE_KINDS
};

/* Chains of two styles take turns: few dear tables are balanced by trading
 * columns, many small ones are only cut up by it. */
#define TUNING_STYLES 2
#define TUNING_MAX_REBUILT 4

/* Shares are of a thousand. */
struct tuning {
    uint32_t changes[TUNING_STYLES][N_CHANGE_KINDS]; /* how often, of their
                                                        sum */
    uint32_t rebuilds;    /* share that is none of these */
    uint32_t n_rebuilt;   /* tables that a rebuild takes off, at most */
    uint32_t recuts;      /* of those beside the first: are cut anew */
    bool pours;           /* whole tables and columns: search/moves.h */
    uint32_t anywhere;    /* of changes: begin on any device, not on one that
                             sets the total */
    double heavy_weight;  /* the total is that of the slowest device, so most
                             changes leave it as it is: what they do to the
                             others counts this much */
    double excess_weight; /* a device that exceeds its memory by all of it
                             costs so many times the best total: what exceeds
                             at the start gets out of it, nothing stays */
    uint32_t n_prices;    /* of memory and replicas that starts are built
                             by, at most */
    uint32_t tempered;    /* of a stage; the rest is annealed */
};

const struct tuning *tuning_default(void);

/* True so many times of a thousand. */
static inline bool tuning_draw(struct rng *rng, uint32_t share)
{
    return rng_draw(rng, 1000) < share;
}

#endif
