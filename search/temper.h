/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_TEMPER_H
#define NEUROSHARD_SEARCH_TEMPER_H

#include "search/evaluator.h"

/*
 * Simulated annealing and parallel tempering: a fixed number of chains run on
 * all threads. Each chain is a simulated annealing (Kirkpatrick, Gelatt, Vecchi
 * 1983). There are two schedules. Annealing descends far. Parallel tempering
 * escapes from any local minimum, but needs many steps per table, because
 * assignments must travel from the hottest chain to the coldest.
 *
 * Chains that share a pricing batch run in lock-step: each proposes a change
 * (search/moves.h), all changes are priced, and each is accepted or rejected.
 * The schedules depend on work, not on the clock. A chain depends only on its
 * own random numbers and temperature. So neither batches nor threads change the
 * outcome.
 */

#define TEMPER_CHAINS 8

/* One chain. */
struct chain {
    struct evaluator evaluator; /* assignment and candidate of the chain */
    struct rng rng;
    double temperature_ms;
    struct snapshot best; /* best assignment so far: less excess is better than
                             a lower total; an excess of 0 keeps all limits */
    bool is_saved;        /* the assignment is no better than `best` */
    /* [n_imbalance]: imbalance penalty of each term with a weight above 0. Each
     * device adds weight_ms x (scale x its term)^8 to the penalty. scale is 1 /
     * M, and weight_ms is M times the weight of the term, where M is the
     * maximum of the term at the start of the chain. */
    struct imbalance {
        uint32_t term;
        double scale, weight_ms;
    } imbalance[ORACLE_MAX_TERMS];
    uint32_t n_imbalance;
    double all_imbalance_ms; /* sum of the penalties of the assignment, up to
                            rounding */
};

/* Callback that returns whether to go on. It is called between rounds, at most
 * about 10^4 steps apart. n_done is the number of steps that each chain has
 * done in this cycle. */
typedef bool goes_on_fn(void *ctx, uint64_t n_done);

/* All chains and their schedule. */
struct temper {
    struct pool *pool; /* not owned; may be NULL */
    struct chain all[TEMPER_CHAINS];
    struct chain *chains[TEMPER_CHAINS]; /* in tempering sorted by temperature,
                                            the coldest first */
    unsigned lock_step; /* number of chains priced in one batch */
    /* buffers; one for each group of chains that are priced in one batch */
    struct pricing pricing[TEMPER_CHAINS];
    struct rng rng;         /* random numbers of the exchanges */
    uint64_t n_round_steps; /* steps that each chain does in this round */
    double cooling; /* factor by which the temperatures are multiplied in each
                       step */
    goes_on_fn *goes_on;
    void *ctx;
};

/* Returns the number of changes to try: `asked`, or the default number if
 * `asked` is SEARCH_EFFORT_AUTO. */
uint64_t temper_effort(uint64_t asked);

/* Creates the chains. Before the chains can run, each must get a starting
 * assignment (temper_start). */
void temper_open(struct temper *temper, const struct search_space *space,
                 struct pool *pool, uint64_t seed, goes_on_fn *goes_on,
                 void *ctx);
void temper_close(
    struct temper *temper); /* frees the chains; accepts a zeroed struct */
/* Returns the number of candidates priced since temper_open. */
uint64_t temper_priced(const struct temper *temper);

/* Starts all chains without a migration limit. Chain c starts from starts[c
 * modulo n_starts]. */
void temper_start(struct temper *temper, const struct snapshot *starts,
                  unsigned n_starts);
/* Starts one chain with a migration limit (move_limit_bytes of struct
 * assignment). */
void temper_start_chain(struct temper *temper, unsigned c,
                        const struct snapshot *from, uint64_t move_limit_bytes);
/* Takes a snapshot of the assignment of each chain, [TEMPER_CHAINS]. If
 * temper_start gets these snapshots later, the chains continue from them. */
void temper_pause(const struct temper *temper, struct snapshot *assignments);
/* Returns the best assignment of all chains since they started. Less excess is
 * better than a lower total. The caller does not own the result. */
struct snapshot *temper_best(const struct temper *temper);

/* Simulated annealing: each chain does n_steps. All chains have the same
 * temperature, which falls from hot_frac times the best total to near 0.
 * Returns false if goes_on ended it. */
bool temper_anneal(struct temper *temper, uint64_t n_steps, double hot_frac);

/* Parallel tempering (Swendsen and Wang 1986; Geyer 1991): each chain does
 * n_steps at a temperature of its own. The highest temperature is hot_frac
 * times the best total. Two chains with neighbouring temperatures exchange them
 * by Metropolis' rule. Returns false if goes_on ended it. */
bool temper_exchange(struct temper *temper, uint64_t n_steps, double hot_frac);

/*
 * Repairs an assignment that exceeds the memory. It is used after packing has
 * failed. All pieces are placed, whether they fit or not, and then annealed by
 * memory alone: all plans count as equally cheap, and a device costs more the
 * fuller it is. The annealing ends when no device exceeds its memory, and the
 * function returns 0. If this is not reached, the function returns the bytes by
 * which the best assignment still exceeds the memory, and leaves *io as it was.
 * It takes at most about `patience` seconds.
 */
uint64_t temper_repair(struct snapshot *io, const struct search_space *space,
                       unsigned patience);

#endif
