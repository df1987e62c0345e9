/* SPDX-License-Identifier: MIT */
#include "search/watch.h"

#include <math.h>

static const struct watch *watch_of(const struct oracle *oracle)
{
    return (const struct watch *)(const void *)oracle;
}

static void note(const struct watch *watch, const double *answers, size_t n)
{
    int is_bad = 0;

    for (size_t i = 0; i < n; i++)
        is_bad |= !isfinite(answers[i]);
    if (is_bad)
        atomic_store_explicit(watch->is_bad, true, memory_order_relaxed);
}

static void watch_embed(const struct oracle *base, const struct shard *shards,
                        size_t n, double *out)
{
    const struct watch *watch = watch_of(base);

    watch->oracle->ops->embed(watch->oracle, shards, n, out);
    note(watch, out, n * base->width);
}

static void watch_compute(const struct oracle *base, const double *sums,
                          size_t n, double *compute_ms)
{
    const struct watch *watch = watch_of(base);

    watch->oracle->ops->compute(watch->oracle, sums, n, compute_ms);
    note(watch, compute_ms, n);
}

static void watch_comm(const struct oracle *base, size_t n, const double *sums,
                       const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    const struct watch *watch = watch_of(base);
    size_t n_answers = n * base->problem->cluster.n_devices;

    watch->oracle->ops->comm(watch->oracle, n, sums, compute_ms, fwd_ms,
                             bwd_ms);
    note(watch, fwd_ms, n_answers);
    note(watch, bwd_ms, n_answers);
}

static void watch_bwd(const struct oracle *base, size_t n, const double *lanes,
                      double *bwd_ms)
{
    const struct watch *watch = watch_of(base);

    watch->oracle->ops->bwd(watch->oracle, n, lanes, bwd_ms);
    note(watch, bwd_ms, n * base->problem->cluster.n_devices);
}

static void watch_fwd(const struct oracle *base, size_t n, const double *lanes,
                      const double *compute_ms, const double *bwd_ms,
                      double *fwd_ms)
{
    const struct watch *watch = watch_of(base);

    watch->oracle->ops->fwd(watch->oracle, n, lanes, compute_ms, bwd_ms,
                            fwd_ms);
    note(watch, fwd_ms, n * base->problem->cluster.n_devices);
}

static void watch_terms(const struct oracle *base, const double *sums,
                        const double *compute_ms, size_t n, double *terms_ms)
{
    const struct watch *watch = watch_of(base);

    watch->oracle->ops->terms(watch->oracle, sums, compute_ms, n, terms_ms);
    note(watch, terms_ms, n * base->n_terms);
}

void watch_init(struct watch *watch, const struct oracle *oracle)
{
    *watch = (struct watch){.base = *oracle, .oracle = oracle};
    watch->ops = (struct oracle_ops){
        .embed = watch_embed,
        .compute = watch_compute,
        .comm = watch_comm,
        .bwd = oracle->ops->bwd ? watch_bwd : NULL,
        .fwd = oracle->ops->fwd ? watch_fwd : NULL,
        .terms = oracle->ops->terms ? watch_terms : NULL,
    };
    watch->base.ops = &watch->ops;
    watch->is_bad = &watch->noted;
}

bool watch_is_bad(const struct watch *watch)
{
    return atomic_load_explicit(watch->is_bad, memory_order_relaxed);
}

int watch_check(const struct watch *watch, struct err *err)
{
    if (!watch_is_bad(watch))
        return 0;
    return err_set(err, ERR_INPUT,
                   "cost model '%s' gives no finite cost for some devices",
                   watch->oracle->name);
}
