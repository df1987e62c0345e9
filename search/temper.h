/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_TEMPER_H
#define NEUROSHARD_SEARCH_TEMPER_H

#include "search/trial.h"

/*
 * A fixed number of chains, each a simulated annealing (Kirkpatrick, Gelatt,
 * Vecchi 1983), walked on all threads by either of two schedules. Annealing
 * goes deep, tempering comes out of any hole: it wants many steps a table, as
 * layouts must find their way from the hottest chain to the coldest.
 *
 * Chains go in lock-step where several are priced in one batch: each proposes a
 * change (search/moves.h), each is accepted or not. Schedules hang on work,
 * not on the clock, and what a chain does on its own draws and temperature
 * alone, so neither batches nor threads change the outcome.
 */

#define TEMPER_CHAINS 8

struct chain {
    struct tryout at;
    struct rng rng;
    double temperature_ms;
    struct snapshot best; /* excess is 0 once it keeps all limits;
                             less is better than a lower total */
    bool is_saved;        /* the layout is no better than `best` */
    struct heavy {
        uint32_t term;
        double scale, weight_ms; /* 1 / the largest when the chain started,
                                    and the largest by its weight */
    } heavy[ORACLE_MAX_TERMS];   /* [n_heavy]: of the terms that have one */
    uint32_t n_heavy;
    double all_heavy_ms; /* of the layout as it is, but for rounding */
};

/* Asked between rounds, some 10^4 steps or fewer apart, with the steps that
 * each chain has done in this cycle. */
typedef bool goes_on_fn(void *ctx, uint64_t n_done);

struct temper {
    struct pool *pool; /* not owned; may be NULL */
    struct chain all[TEMPER_CHAINS];
    struct chain *chains[TEMPER_CHAINS];   /* tempering keeps them in order, the
                                              coldest first */
    unsigned lock_step;                    /* chains that are priced together */
    struct pricing pricing[TEMPER_CHAINS]; /* of each of their groups */
    struct rng rng;                        /* of exchanges */
    uint64_t n_round_steps;                /* of this round, of each chain */
    double cooling;
    goes_on_fn *goes_on;
    void *ctx;
};

/* Changes to try in all: as many as asked for, if that is not
 * SEARCH_EFFORT_AUTO. */
uint64_t temper_effort(uint64_t asked);

void temper_open(struct temper *temper, const struct parts *parts,
                 struct pool *pool, uint64_t seed, goes_on_fn *goes_on,
                 void *ctx);
void temper_close(struct temper *temper); /* a zeroed one is fine */
/* Layouts priced since. */
uint64_t temper_priced(const struct temper *temper);

/* All chains go on from these, in turn. */
void temper_start(struct temper *temper, const struct snapshot *starts,
                  unsigned n_starts);
/* One of them goes on from this, and may move so much (struct layout). */
void temper_start_chain(struct temper *temper, unsigned c,
                        const struct snapshot *from, uint64_t move_limit_bytes);
/* Lays by where the chains stand, [TEMPER_CHAINS]: temper_start of these goes
 * on from there. */
void temper_pause(const struct temper *temper, struct snapshot *layouts);
/* The best layout of all chains since they started; less excess is better than
 * a lower total. Not owned. */
struct snapshot *temper_best(const struct temper *temper);

/* Simulated annealing: all chains alike, from hot_frac of the best total down
 * to near nothing. False where goes_on said so. */
bool temper_anneal(struct temper *temper, uint64_t n_steps, double hot_frac);

/* Parallel tempering (Swendsen and Wang 1986; Geyer 1991): each chain at a
 * temperature of its own, the hottest at hot_frac of the best total, and
 * neighbours exchange temperatures as Metropolis' rule has it. */
bool temper_exchange(struct temper *temper, uint64_t n_steps, double hot_frac);

/*
 * Where packing is stuck: all is placed, whether it fits or not, and annealed
 * as any layout is, but all plans cost one, and a device is the dearer the
 * fuller it is, so that memory is all there is to lower; until none holds more
 * than it may. Returns 0, or the bytes by which the best layout still exceeds
 * memory; *io is then as it was. Takes at most a second, or so many as there is
 * patience.
 */
uint64_t temper_repair(struct snapshot *io, const struct parts *parts,
                       unsigned patience);

#endif
