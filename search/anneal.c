/* SPDX-License-Identifier: MIT */
#include "search/anneal.h"

#include "search/search.h"

#include <math.h>
#include <string.h>

/* Where no effort is given: about a second of two cores. A short list takes
 * twice the steps, as each of its tables counts. */
#define EFFORT 2400000
#define SHORT_LIST 20
/* Additive cost models are searched in a fraction of that: so much a unit. */
#define ADDITIVE_EFFORT_A_UNIT 12000
#define MIN_ADDITIVE_EFFORT 320000

uint64_t anneal_effort(const struct parts *parts, uint64_t asked)
{
    uint64_t n = parts->n_units, effort = ADDITIVE_EFFORT_A_UNIT * n;

    if (asked != SEARCH_EFFORT_AUTO)
        return asked;
    if (!parts->oracle->is_additive)
        return n > SHORT_LIST ? EFFORT : 2 * EFFORT;
    if (n <= SHORT_LIST)
        return EFFORT / 2;
    if (effort < MIN_ADDITIVE_EFFORT)
        return MIN_ADDITIVE_EFFORT;
    return effort > EFFORT ? EFFORT : effort;
}

void bundle_init(struct bundle *bundle, const struct parts *parts,
                 uint32_t n_chains, uint64_t seed, uint32_t first_chain)
{
    size_t n = (size_t)n_chains * parts->problem->cluster.n_devices;

    *bundle = (struct bundle){.parts = parts, .n_chains = n_chains};
    bundle->chains = mem_alloc(n_chains, sizeof(*bundle->chains));
    for (uint32_t c = 0; c < n_chains; c++) {
        struct chain *chain = &bundle->chains[c];

        layout_init(&chain->layout, parts);
        trial_init(&chain->trial, &chain->layout);
        rng_init(&chain->rng, seed, first_chain + c);
    }
    if (parts->oracle->ops->terms)
        return;
    bundle->sums = mem_alloc(n * parts->oracle->width, sizeof(double));
    bundle->compute_ms = mem_alloc(n, sizeof(double));
    bundle->fwd_ms = mem_alloc(n, sizeof(double));
    bundle->bwd_ms = mem_alloc(n, sizeof(double));
}

void bundle_release(struct bundle *bundle)
{
    for (uint32_t c = 0; c < bundle->n_chains; c++) {
        layout_release(&bundle->chains[c].layout);
        trial_release(&bundle->chains[c].trial);
        snapshot_release(&bundle->chains[c].best);
    }
    mem_free(bundle->chains);
    mem_free(bundle->sums);
    mem_free(bundle->compute_ms);
    mem_free(bundle->fwd_ms);
    mem_free(bundle->bwd_ms);
    mem_free(bundle->rows);
    mem_free(bundle->rows_ms);
    *bundle = (struct bundle){0};
}

static void shadow_row(struct bundle *bundle, uint32_t c, uint32_t r,
                       const double *sum, double compute_ms)
{
    size_t at = (size_t)c * bundle->parts->problem->cluster.n_devices + r;
    size_t width = bundle->parts->oracle->width;

    memcpy(bundle->sums + at * width, sum, width * sizeof(double));
    bundle->compute_ms[at] = compute_ms;
}

/* The devices that the trial touched, as the layout has them. */
static void shadow_layout(struct bundle *bundle, uint32_t c)
{
    const struct chain *chain = &bundle->chains[c];
    size_t width = bundle->parts->oracle->width;

    for (uint32_t i = 0; i < chain->trial.n_devices; i++) {
        uint32_t r = chain->trial.devices[i];

        shadow_row(bundle, c, r, chain->layout.sums + r * width,
                   chain->layout.compute_ms[r]);
    }
}

static void shadow_trial(struct bundle *bundle, uint32_t c)
{
    const struct trial *trial = &bundle->chains[c].trial;
    size_t width = bundle->parts->oracle->width;

    for (uint32_t i = 0; i < trial->n_devices; i++)
        shadow_row(bundle, c, trial->devices[i], trial->sums + i * width,
                   trial->compute_ms[i]);
}

void bundle_start(struct bundle *bundle, uint32_t c,
                  const struct snapshot *from)
{
    struct chain *chain = &bundle->chains[c];

    snapshot_load(from, &chain->layout);
    snapshot_save(&chain->best, &chain->layout);
    chain->best_excess = chain->layout.excess;
    chain->is_saved = true;
    chain->most_ms[0] = chain->layout.compute_ms[chain->layout.slowest];
    for (size_t k = 0;
         chain->layout.terms_ms && k < bundle->parts->oracle->n_terms; k++)
        chain->most_ms[k] = chain->layout.tops[k].ms[0];
    for (uint32_t r = 0; bundle->sums && r < chain->layout.n_devices; r++)
        shadow_row(bundle, c, r,
                   chain->layout.sums + r * bundle->parts->oracle->width,
                   chain->layout.compute_ms[r]);
}

/* Heads of all devices that trials touch, at once. */
static void price_heads(struct bundle *bundle)
{
    const struct oracle *oracle = bundle->parts->oracle;
    size_t width = oracle->width, n = 0;

    for (uint32_t c = 0; c < bundle->n_chains; c++)
        n += bundle->chains[c].trial.n_devices;
    if (!n)
        return;
    if (bundle->rows_capacity < n) {
        bundle->rows_capacity = 2 * n;
        bundle->rows = mem_grow(bundle->rows, 2 * n * width, sizeof(double));
        bundle->rows_ms = mem_grow(bundle->rows_ms, 2 * n, sizeof(double));
    }
    n = 0;
    for (uint32_t c = 0; c < bundle->n_chains; c++) {
        const struct trial *trial = &bundle->chains[c].trial;

        if (trial->n_devices)
            memcpy(bundle->rows + n * width, trial->sums,
                   trial->n_devices * width * sizeof(double));
        n += trial->n_devices;
    }
    oracle->ops->compute(oracle, bundle->rows, n, bundle->rows_ms);
    n = 0;
    for (uint32_t c = 0; c < bundle->n_chains; c++) {
        struct trial *trial = &bundle->chains[c].trial;

        if (trial->n_devices)
            memcpy(trial->compute_ms, bundle->rows_ms + n,
                   trial->n_devices * sizeof(double));
        n += trial->n_devices;
    }
}

static void price_comm(struct bundle *bundle)
{
    const struct oracle *oracle = bundle->parts->oracle;
    size_t n_devices = bundle->parts->problem->cluster.n_devices;

    for (uint32_t c = 0; c < bundle->n_chains; c++)
        shadow_trial(bundle, c);
    oracle->ops->comm(oracle, bundle->n_chains, bundle->sums,
                      bundle->compute_ms, bundle->fwd_ms, bundle->bwd_ms);
    for (uint32_t c = 0; c < bundle->n_chains; c++) {
        size_t at = c * n_devices;

        bundle->chains[c].trial.total_ms =
            oracle_total_ms(n_devices, bundle->compute_ms + at,
                            bundle->bwd_ms + at, bundle->fwd_ms + at);
    }
}

/* Draws that lead nowhere are drawn again, so often. */
#define TRIES 4

static void propose_all(struct bundle *bundle)
{
    for (uint32_t c = 0; c < bundle->n_chains; c++) {
        struct chain *chain = &bundle->chains[c];

        for (unsigned i = 0; i < TRIES; i++) {
            propose(&chain->trial, &chain->layout, &chain->rng);
            if (chain->trial.n_changes) {
                trial_sum(&chain->trial, &chain->layout);
                break;
            }
        }
    }
}

/* How much heavier the devices become that the trial touches, term by term (by
 * compute where there are no terms), in ms. */
static double heavier(const struct bundle *bundle, const struct chain *chain)
{
    const struct layout *layout = &chain->layout;
    const struct trial *trial = &chain->trial;
    const size_t n_terms =
        layout->terms_ms ? bundle->parts->oracle->n_terms : 1;
    const double *now =
        layout->terms_ms ? layout->terms_ms : layout->compute_ms;
    const double *then = layout->terms_ms ? trial->terms_ms : trial->compute_ms;
    double sum = 0;

    for (uint32_t i = 0; i < trial->n_devices; i++, then += n_terms)
        for (size_t k = 0; k < n_terms; k++)
            sum += layout_heaviness(then[k], chain->most_ms[k]) -
                   layout_heaviness(now[trial->devices[i] * n_terms + k],
                                    chain->most_ms[k]);
    return sum;
}

static double excess_ms(const struct chain *chain, double excess)
{
    return chain->layout.parts->tuning->excess_weight * excess *
           chain->best.total_ms;
}

double chain_energy_ms(const struct chain *chain)
{
    return chain->layout.total_ms + excess_ms(chain, chain->layout.excess);
}

bool chain_is_better(const struct chain *chain, const struct chain *other)
{
    if (chain->best_excess > 0 || other->best_excess > 0)
        return chain->best_excess < other->best_excess;
    return chain->best.total_ms < other->best.total_ms;
}

/* What the trial is worse by, in ms. */
static double rise_of(const struct bundle *bundle, const struct chain *chain)
{
    const struct layout *layout = &chain->layout;
    const struct trial *trial = &chain->trial;

    return trial->total_ms - layout->total_ms +
           excess_ms(chain, trial->excess - layout->excess) +
           bundle->parts->tuning->heavy_weight * heavier(bundle, chain);
}

/* Whether the layout is better than the best laid by. */
static bool is_best(const struct chain *chain)
{
    const struct layout *layout = &chain->layout;

    if (layout->excess > 0 || chain->best_excess > 0)
        return layout->excess < chain->best_excess;
    return layout->total_ms < chain->best.total_ms;
}

static void save(struct chain *chain)
{
    snapshot_save(&chain->best, &chain->layout);
    chain->best_excess = chain->layout.excess;
    chain->is_saved = true;
}

static void decide(struct bundle *bundle, uint32_t c)
{
    struct chain *chain = &bundle->chains[c];
    struct layout *layout = &chain->layout;
    const struct trial *trial = &chain->trial;
    double rise;

    if (!trial->n_changes)
        return;
    rise = rise_of(bundle, chain);
    if (!isfinite(trial->total_ms))
        rise = INFINITY;
    if (rise > 0 &&
        !(rng_uniform(&chain->rng) < exp(-rise / chain->temperature_ms))) {
        if (bundle->sums)
            shadow_layout(bundle, c);
        return;
    }
    if (!chain->is_saved)
        save(chain);
    layout_commit(layout, trial);
    if (is_best(chain))
        chain->is_saved = false;
}

void bundle_anneal(struct bundle *bundle, uint64_t n_steps, double cooling)
{
    for (uint64_t step = 0; step < n_steps; step++) {
        propose_all(bundle);
        price_heads(bundle);
        if (bundle->sums)
            price_comm(bundle);
        else
            for (uint32_t c = 0; c < bundle->n_chains; c++)
                trial_price_terms(&bundle->chains[c].trial,
                                  &bundle->chains[c].layout);
        for (uint32_t c = 0; c < bundle->n_chains; c++) {
            bundle->n_priced += bundle->chains[c].trial.n_changes > 0;
            decide(bundle, c);
            bundle->chains[c].temperature_ms *= cooling;
        }
    }
    for (uint32_t c = 0; c < bundle->n_chains; c++)
        if (!bundle->chains[c].is_saved)
            save(&bundle->chains[c]);
}
