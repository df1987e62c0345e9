/* SPDX-License-Identifier: MIT */
#include "search/wire_rule.h"

#include "search/gain.h"

#include <assert.h>
#include <math.h>

static double total_at(const struct wire_candidates *all, unsigned candidate,
                       unsigned wire)
{
    return all->list[candidate].prices[wire].total_ms;
}

void wire_add(struct wire_candidates *all, const struct wire_candidate *one)
{
    assert(all->n < MOST_WIRE_CANDIDATES);
    all->list[all->n++] = *one;
    for (unsigned k = 0; k < N_WIRES; k++)
        all->best_ms[k] = fmin(all->best_ms[k], one->prices[k].total_ms);
}

unsigned wire_best_at(const struct wire_candidates *all, unsigned wire)
{
    unsigned best = 0;

    for (unsigned i = 1; i < all->n; i++)
        if (total_at(all, i, wire) < total_at(all, best, wire))
            best = i;
    return best;
}

double wire_regret_at(const struct wire_candidates *all, unsigned candidate,
                      unsigned wire)
{
    return total_at(all, candidate, wire) / all->best_ms[wire] - 1;
}

/* Returns the wire at which the candidate has its worst regret. */
static unsigned worst_wire(const struct wire_candidates *all,
                           unsigned candidate)
{
    unsigned worst = 0;

    for (unsigned k = 1; k < N_WIRES; k++)
        if (wire_regret_at(all, candidate, k) >
            wire_regret_at(all, candidate, worst))
            worst = k;
    return worst;
}

static double worst_regret(const struct wire_candidates *all,
                           unsigned candidate)
{
    return wire_regret_at(all, candidate, worst_wire(all, candidate));
}

/* Returns the error of the ratio of two candidates at a wire; 0 if unknown. */
static double error_at(const struct wire_candidates *all, unsigned one,
                       unsigned other, unsigned wire)
{
    return fmax(0, priced_ratio_error(&all->list[one].prices[wire],
                                      &all->list[other].prices[wire]));
}

double wire_limit_ms(const struct wire_candidates *all)
{
    const double error = error_at(all, 0, 0, 0);

    return total_at(all, 0, 0) *
           (1 + (error > 0 ? fmin(WIRE_LIMIT_FRAC, error) : WIRE_LIMIT_FRAC));
}

/* Returns whether WIRE_LIMITED may take the candidate. */
static bool is_allowed(const struct wire_candidates *all, unsigned candidate)
{
    const struct wire_candidate *recommended = &all->list[0];
    const struct wire_candidate *other = &all->list[candidate];
    const unsigned worst = worst_wire(all, 0);

    if (total_at(all, candidate, 0) > wire_limit_ms(all) ||
        other->n_kinds > recommended->n_kinds ||
        other->n_changed > recommended->n_changed)
        return false;
    return other->n_shards <= recommended->n_shards ||
           total_at(all, 0, worst) >
               total_at(all, candidate, worst) *
                   (1 + error_at(all, 0, candidate, worst));
}

unsigned wire_pick(const struct wire_candidates *all, enum wire_choice choice)
{
    unsigned best = 0;

    for (unsigned i = 1; i < all->n && choice != WIRE_NOMINAL; i++) {
        const double gain = worst_regret(all, best) - worst_regret(all, i);

        if (choice == WIRE_ROBUST
                ? gain > 0
                : gain >= WIRE_LEAST_GAIN_FRAC && is_allowed(all, i))
            best = i;
    }
    return best;
}

/* Returns the gain of another candidate over the chosen one, less the gain that
 * it must exceed to be recommended. */
static double beyond_at(const struct wire_candidates *all, unsigned chosen,
                        unsigned other, unsigned wire)
{
    const struct wire_candidate *from = &all->list[chosen];
    const struct wire_candidate *to = &all->list[other];
    const struct gain_rule rule = {
        .error_frac = error_at(all, chosen, other, wire),
        .knows_dense = all->knows_dense,
        .changes_training = to->n_changed > from->n_changed};

    return gain_beyond(&(struct step_parts){.priced = from->prices[wire],
                                            .host_ms = from->host_ms},
                       &(struct step_parts){.priced = to->prices[wire],
                                            .host_ms = to->host_ms},
                       &rule);
}

struct wire_break_even wire_break_even(const struct wire_candidates *all,
                                       unsigned chosen)
{
    const unsigned slowest = N_WIRES - 1;
    struct wire_break_even out = {0};
    double after = 0;
    unsigned other = chosen;

    for (unsigned i = 0; i < all->n; i++) {
        const double beyond = beyond_at(all, chosen, i, slowest);

        if (i != chosen && beyond > after) {
            other = i;
            after = beyond;
        }
    }
    if (other == chosen)
        return out;
    out.gain_frac =
        total_at(all, chosen, slowest) / total_at(all, other, slowest) - 1;
    for (unsigned k = slowest; k; k--) {
        const double before = beyond_at(all, chosen, other, k - 1);
        const double from = 1 / wire_shares[k - 1], to = 1 / wire_shares[k];

        if (before < 0) {
            out.share = 1 / (to + (from - to) * after / (after - before));
            return out;
        }
        after = before;
    }
    out.share = 1;
    return out;
}
