/* SPDX-License-Identifier: MIT */
#include "search/wire_oracle.h"

#include <string.h>

/* Rise of the total per ms by which the limit is exceeded. It is large, so that
 * no plan above the limit is the best one. */
#define LIMIT_SLOPE 10

static const struct wire_oracle *wires_of(const struct oracle *base)
{
    return (const struct wire_oracle *)(const void *)base;
}

/* Returns the total from the totals at all wires. It never falls if one of them
 * grows. */
static double worst_ms(const struct wire_oracle *wires,
                       const double totals_ms[N_WIRES])
{
    double ms = totals_ms[0];

    for (unsigned k = 1; k < N_WIRES; k++)
        ms = max_of(wires->weights[k] * totals_ms[k], ms);
    if (totals_ms[0] > wires->most_ms)
        ms += LIMIT_SLOPE * (totals_ms[0] - wires->most_ms);
    return ms;
}

static void embed(const struct oracle *base, const struct shard *shards,
                  size_t n, double *out)
{
    const struct oracle *first = wires_of(base)->models[0];

    first->ops->embed(first, shards, n, out);
}

static void compute(const struct oracle *base, const double *sums, size_t n,
                    double *compute_ms)
{
    const struct oracle *first = wires_of(base)->models[0];

    first->ops->compute(first, sums, n, compute_ms);
}

static void phases(const struct oracle *base, const double *sums,
                   const double *compute_ms, double (*phases_ms)[N_PHASES])
{
    const struct oracle *first = wires_of(base)->models[0];

    first->ops->phases(first, sums, compute_ms, phases_ms);
}

static size_t judge(const struct oracle *base, const struct shard *shards,
                    size_t n, const double *compute_ms,
                    struct cost_error *error, struct cost_outside **outside,
                    struct arena *arena)
{
    const struct oracle *first = wires_of(base)->models[0];

    return first->ops->judge(first, shards, n, compute_ms, error, outside,
                             arena);
}

/* Stores the times at wire 0. The forward communication of each device includes
 * the time that the worst regret adds to the total. */
static void comm(const struct oracle *base, size_t n, const double *sums,
                 const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    const struct wire_oracle *wires = wires_of(base);
    const size_t n_devices = base->problem->cluster.n_devices;
    double *slow_ms = mem_alloc(n_devices, 2 * sizeof(*slow_ms));

    wires->models[0]->ops->comm(wires->models[0], n, sums, compute_ms, fwd_ms,
                                bwd_ms);
    for (size_t i = 0; i < n; i++) {
        double totals_ms[N_WIRES], more_ms;

        totals_ms[0] = oracle_total_ms(n_devices, compute_ms, bwd_ms, fwd_ms);
        for (unsigned k = 1; k < N_WIRES; k++) {
            wires->models[k]->ops->comm(wires->models[k], 1, sums, compute_ms,
                                        slow_ms, slow_ms + n_devices);
            totals_ms[k] = oracle_total_ms(n_devices, compute_ms, slow_ms,
                                           slow_ms + n_devices);
        }
        more_ms = worst_ms(wires, totals_ms) - totals_ms[0];
        for (size_t r = 0; r < n_devices; r++)
            fwd_ms[r] += more_ms;
        sums += n_devices * base->width;
        compute_ms += n_devices;
        fwd_ms += n_devices;
        bwd_ms += n_devices;
    }
    mem_free(slow_ms);
}

/* Terms of wire 0, and then the exchanges of each other wire. */
static void terms(const struct oracle *base, const double *sums, size_t n,
                  double *compute_ms, double *terms_ms)
{
    const struct wire_oracle *wires = wires_of(base);
    const struct oracle *first = wires->models[0];
    const unsigned n_exchanges = step_n_exchanges(first->step);

    first->ops->terms(first, sums, n, compute_ms, terms_ms);
    /* makes room for the exchanges, the last device first */
    for (size_t i = n; i--;) {
        double *own_ms = terms_ms + i * base->n_terms;

        memmove(own_ms, terms_ms + i * first->n_terms,
                first->n_terms * sizeof(*own_ms));
        own_ms += first->n_terms;
        for (unsigned k = 1; k < N_WIRES; k++, own_ms += n_exchanges)
            wires->models[k]->ops->exchanges(wires->models[k],
                                             sums + i * base->width, 1, own_ms);
    }
}

static double total(const struct oracle *base, const double *max_ms)
{
    const struct wire_oracle *wires = wires_of(base);
    const struct step *step = wires->models[0]->step;
    const unsigned n_exchanges = step_n_exchanges(step);
    const double *exchanges_ms = max_ms + wires->models[0]->n_terms;
    double totals_ms[N_WIRES], own_ms[STEP_MAX_TERMS];

    totals_ms[0] = oracle_terms_total_ms(wires->models[0], max_ms);
    memcpy(own_ms, max_ms, wires->models[0]->n_terms * sizeof(*own_ms));
    for (unsigned k = 1; k < N_WIRES; k++, exchanges_ms += n_exchanges) {
        for (unsigned e = 0; e < n_exchanges; e++)
            own_ms[step_exchange_term(step, e)] = exchanges_ms[e];
        totals_ms[k] = oracle_terms_total_ms(wires->models[k], own_ms);
    }
    return worst_ms(wires, totals_ms);
}

void wire_oracle_init(struct wire_oracle *oracle,
                      const struct oracle *const models[N_WIRES],
                      const double best_ms[N_WIRES], double most_ms)
{
    *oracle = (struct wire_oracle){.base = *models[0], .most_ms = most_ms};
    for (unsigned k = 0; k < N_WIRES; k++) {
        oracle->models[k] = models[k];
        oracle->weights[k] = best_ms[0] / best_ms[k];
    }
    oracle->ops = (struct oracle_ops){.embed = embed,
                                      .compute = compute,
                                      .comm = comm,
                                      .terms = terms,
                                      .total = total,
                                      .phases = phases};
    if (models[0]->ops->judge)
        oracle->ops.judge = judge;
    oracle->base.ops = &oracle->ops;
    oracle->base.n_terms += (N_WIRES - 1) * step_n_exchanges(models[0]->step);
}
