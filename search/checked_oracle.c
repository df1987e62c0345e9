/* SPDX-License-Identifier: MIT */
#include "search/checked_oracle.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "core/plan_check.h"
#include "core/plan_price.h"

#include <math.h>

static const struct checked_oracle *checked_of(const struct oracle *base)
{
    return (const struct checked_oracle *)(const void *)base;
}

static const struct oracle *asked(const struct oracle *base)
{
    return checked_of(base)->oracle;
}

/* Notes whether any answer is not finite. It checks only the sum of the
 * answers, because the sum is not finite if an answer is not finite. */
static void note(const struct oracle *base, const double *answers, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += answers[i];
    if (!isfinite(sum))
        *checked_of(base)->is_bad = true;
}

static void checked_embed(const struct oracle *base, const struct shard *shards,
                          size_t n, double *out)
{
    asked(base)->ops->embed(asked(base), shards, n, out);
    note(base, out, n * base->width);
}

static void checked_embed_tier(const struct oracle *base,
                               const struct shard *shard, double *vector)
{
    asked(base)->ops->embed_tier(asked(base), shard, vector);
    note(base, vector, base->width);
}

static void checked_compute(const struct oracle *base, const double *sums,
                            size_t n, double *compute_ms)
{
    asked(base)->ops->compute(asked(base), sums, n, compute_ms);
    note(base, compute_ms, n);
}

static void checked_comm(const struct oracle *base, size_t n,
                         const double *sums, const double *compute_ms,
                         double *fwd_ms, double *bwd_ms)
{
    asked(base)->ops->comm(asked(base), n, sums, compute_ms, fwd_ms, bwd_ms);
    note(base, fwd_ms, n * base->problem->cluster.n_devices);
    note(base, bwd_ms, n * base->problem->cluster.n_devices);
}

static void checked_bwd(const struct oracle *base, size_t n,
                        const double *lanes, double *bwd_ms)
{
    asked(base)->ops->bwd(asked(base), n, lanes, bwd_ms);
    note(base, bwd_ms, n * base->problem->cluster.n_devices);
}

static void checked_fwd(const struct oracle *base, size_t n,
                        const double *lanes, const double *compute_ms,
                        const double *bwd_ms, double *fwd_ms)
{
    asked(base)->ops->fwd(asked(base), n, lanes, compute_ms, bwd_ms, fwd_ms);
    note(base, fwd_ms, n * base->problem->cluster.n_devices);
}

static void checked_terms(const struct oracle *base, const double *sums,
                          size_t n, double *compute_ms, double *terms_ms)
{
    asked(base)->ops->terms(asked(base), sums, n, compute_ms, terms_ms);
    note(base, compute_ms, n);
    note(base, terms_ms, n * base->n_terms);
}

static void checked_exchanges(const struct oracle *base, const double *sums,
                              size_t n, double *exchanges_ms)
{
    asked(base)->ops->exchanges(asked(base), sums, n, exchanges_ms);
    note(base, exchanges_ms, n * step_n_exchanges(base->step));
}

static double checked_total(const struct oracle *base, const double *max_ms)
{
    return asked(base)->ops->total(asked(base), max_ms);
}

void checked_oracle_init(struct checked_oracle *checked,
                         const struct oracle *oracle)
{
    *checked = (struct checked_oracle){
        .base = *oracle, .oracle = oracle, .start_ms = clock_ms()};
    checked->ops = (struct oracle_ops){
        .embed = checked_embed,
        .embed_tier = oracle->ops->embed_tier ? checked_embed_tier : NULL,
        .compute = checked_compute,
        .comm = checked_comm,
        .bwd = oracle->ops->bwd ? checked_bwd : NULL,
        .fwd = oracle->ops->fwd ? checked_fwd : NULL,
        .terms = oracle->ops->terms ? checked_terms : NULL,
        .exchanges = oracle->ops->exchanges ? checked_exchanges : NULL,
        .total = oracle->ops->total ? checked_total : NULL,
    };
    checked->base.ops = &checked->ops;
    checked->is_bad = &checked->noted;
}

double search_end_ms(const struct checked_oracle *checked, double limit_ms)
{
    return limit_ms > 0 ? checked->start_ms + limit_ms : INFINITY;
}

const char *stop_reason(const struct checked_oracle *checked, double limit_ms)
{
    if (*checked->is_bad)
        return "done";
    if (interrupt_requested())
        return "interrupt";
    if (clock_ms() >= search_end_ms(checked, limit_ms))
        return "time";
    return NULL;
}

int checked_oracle_check(const struct checked_oracle *checked, struct err *err)
{
    if (!*checked->is_bad)
        return 0;
    return err_set(err, ERR_INPUT,
                   "cost model '%s' gives no finite cost for some GPUs",
                   checked->oracle->cost.name);
}

int checked_oracle_finish(const struct checked_oracle *checked,
                          struct plan *plan, struct arena *arena,
                          struct err *err)
{
    const double bound_ms = plan->bound_ms;

    if (checked_oracle_check(checked, err))
        return -1;
    plan->search_ms = clock_ms() - checked->start_ms;
    plan->shard_ms = NULL; /* the old costs belonged to other shards */
    plan_derive_kinds(plan);
    if (plan_price(plan, checked->oracle, arena, err))
        return -1;
    if (bound_ms > 0)
        plan->bound_ms = bound_ms;
    return plan_check(plan, err);
}
