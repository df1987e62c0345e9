/* SPDX-License-Identifier: MIT */
#include "search/walks.h"

#include <math.h>

/* Chains that are priced together where communication is priced by comm: its
 * nets take four rows at a time. */
#define LOCK_STEP 4
/* Steps of a chain between two questions whether to go on, at most, and rounds
 * of such steps a cycle, at least. */
#define MAX_ROUND_STEPS 8192
#define MIN_ROUNDS 16
/* Temperature at the end of a cycle, as a share of the best total. */
#define COLD_FRAC 0.00005
/* Temperature of the coldest chain, likewise, and steps between exchanges. */
#define LOWEST_FRAC 0.0003
#define EXCHANGE_STEPS 100

void walks_open(struct walks *walks, const struct parts *parts,
                struct pool *pool, uint64_t seed)
{
    unsigned lock_step = parts->oracle->ops->terms ? 1 : LOCK_STEP;

    *walks = (struct walks){.pool = pool};
    walks->n_bundles = WALKS_CHAINS / lock_step;
    for (unsigned c = 0; c < WALKS_CHAINS; c++) {
        struct bundle *bundle = &walks->bundles[c / lock_step];

        if (c % lock_step == 0)
            bundle_init(bundle, parts, lock_step, seed, c);
        walks->chains[c] = &bundle->chains[c % lock_step];
    }
    rng_init(&walks->rng, seed, WALKS_CHAINS);
}

void walks_close(struct walks *walks)
{
    for (unsigned b = 0; b < walks->n_bundles; b++)
        bundle_release(&walks->bundles[b]);
    *walks = (struct walks){0};
}

uint64_t walks_priced(const struct walks *walks)
{
    uint64_t n_priced = 0;

    for (unsigned b = 0; b < walks->n_bundles; b++)
        n_priced += walks->bundles[b].n_priced;
    return n_priced;
}

void walks_start(struct walks *walks, const struct snapshot *starts,
                 unsigned n_starts)
{
    unsigned n = 0;

    for (unsigned b = 0; b < walks->n_bundles; b++)
        for (unsigned c = 0; c < walks->bundles[b].n_chains; c++)
            bundle_start(&walks->bundles[b], c, &starts[n++ % n_starts]);
}

void walks_start_chain(struct walks *walks, unsigned chain,
                       const struct snapshot *from, uint64_t move_limit_bytes)
{
    unsigned lock_step = WALKS_CHAINS / walks->n_bundles;
    struct bundle *bundle = &walks->bundles[chain / lock_step];

    bundle->chains[chain % lock_step].layout.move_limit_bytes =
        move_limit_bytes;
    bundle_start(bundle, chain % lock_step, from);
}

struct snapshot *walks_best(const struct walks *walks)
{
    struct chain *best = walks->chains[0];

    for (unsigned c = 1; c < WALKS_CHAINS; c++)
        if (chain_is_better(walks->chains[c], best))
            best = walks->chains[c];
    return &best->best;
}

static void walk_bundle(void *ctx, size_t task, unsigned thread)
{
    struct walks *walks = ctx;

    (void)thread;
    bundle_anneal(&walks->bundles[task], walks->n_round_steps, walks->cooling);
}

/* Steps first to last of a cycle. */
static void walk(struct walks *walks, uint64_t first, uint64_t last)
{
    walks->n_round_steps = last - first;
    pool_run(walks->pool, walks->n_bundles, walk_bundle, walks);
}

bool walks_anneal(struct walks *walks, uint64_t n_steps, double hot_frac)
{
    const double best_ms = walks_best(walks)->total_ms;
    const double fall = log(COLD_FRAC / hot_frac) / (double)n_steps;
    uint64_t n_rounds = n_steps / MAX_ROUND_STEPS + 1;

    if (n_rounds < MIN_ROUNDS)
        n_rounds = MIN_ROUNDS;
    walks->cooling = exp(fall);
    for (uint64_t round = 0; round < n_rounds; round++) {
        uint64_t first = n_steps * round / n_rounds;

        if (!walks->goes_on(walks->ctx, first))
            return false;
        for (unsigned c = 0; c < WALKS_CHAINS; c++)
            walks->chains[c]->temperature_ms =
                hot_frac * best_ms * exp(fall * (double)first);
        walk(walks, first, n_steps * (round + 1) / n_rounds);
    }
    return true;
}

/* In even steps of the logarithm. */
static void set_ladder(struct walks *walks, double best_ms, double hot_frac)
{
    double rise = pow(hot_frac / LOWEST_FRAC, 1.0 / (WALKS_CHAINS - 1));
    double temperature_ms = LOWEST_FRAC * best_ms;

    for (unsigned c = 0; c < WALKS_CHAINS; c++, temperature_ms *= rise)
        walks->chains[c]->temperature_ms = temperature_ms;
}

/* Neighbours, every second pair. What they would be with the other's
 * temperature is as likely as exp(gain) of what they are. */
static void exchange(struct walks *walks, unsigned first)
{
    for (unsigned c = first; c + 1 < WALKS_CHAINS; c += 2) {
        struct chain *cold = walks->chains[c], *hot = walks->chains[c + 1];
        double gain = (chain_energy_ms(cold) - chain_energy_ms(hot)) *
                      (1 / cold->temperature_ms - 1 / hot->temperature_ms);

        if (gain < 0 && !(rng_uniform(&walks->rng) < exp(gain)))
            continue;
        walks->chains[c] = hot;
        walks->chains[c + 1] = cold;
    }
}

bool walks_temper(struct walks *walks, uint64_t n_steps, double hot_frac)
{
    uint64_t n_rounds = n_steps / EXCHANGE_STEPS + 1;

    walks->cooling = 1;
    for (uint64_t round = 0; round < n_rounds; round++) {
        uint64_t first = n_steps * round / n_rounds;

        if (!walks->goes_on(walks->ctx, first))
            return false;
        set_ladder(walks, walks_best(walks)->total_ms, hot_frac);
        walk(walks, first, n_steps * (round + 1) / n_rounds);
        exchange(walks, round % 2);
    }
    return true;
}
