/* SPDX-License-Identifier: MIT */
/* The errors by class in the GPU files: each class of at least 100 measured
 * samples has an error of its own, which holds 85 to 95 % of the samples, and
 * so does the error of all samples. */
#include "costmodel/formulas/interval.h"
#include "tests/price_sample.h"
#include "tests/tap.h"

#include <stdlib.h>

#define LEAST_SAMPLES 100

struct tally {
    size_t n[MAX_INTERVALS], n_within[MAX_INTERVALS];
};

static int add_samples(struct tally *tally, const struct gpu_spec *spec,
                       const char *db, struct arena *arena, struct err *err)
{
    const char *data = getenv("NEUROSHARD_DATA");
    const char *path =
        arena_printf(arena, "%s/measurements/%s.db", data ? data : "data", db);
    const char *cost = arena_printf(arena, "roofline:%s", spec->name);
    const struct sample **priced;
    struct sample *samples;
    size_t n, n_priced = 0;
    double *ms;

    if (read_samples(&samples, &n, path, arena, err))
        return -1;
    priced = ARENA_NEW(arena, const struct sample *, n);
    ms = ARENA_NEW(arena, double, n);
    for (size_t i = 0; i < n; i++)
        if (!(samples[i].flags & SAMPLE_THROTTLED))
            priced[n_priced++] = &samples[i];
    if (price_samples(ms, priced, n_priced, cost, arena, err))
        return -1;
    for (size_t i = 0; i < n_priced; i++) {
        const size_t class = interval_class_idx(interval_class_of(priced[i]));
        const double own = spec->class_error_frac[class];
        const double error = interval_error(priced[i]->total.median_ms, ms[i]);

        tally->n[class]++;
        tally->n_within[class] +=
            error <= (own > 0 ? own : spec->lookup_error.frac);
        tally->n[0]++;
        tally->n_within[0] += error <= spec->lookup_error.frac;
    }
    return 0;
}

static void test_gpu(const char *gpu, const char *const *dbs)
{
    struct tally tally = {0};
    const struct gpu_spec *spec;
    struct arena arena = {0};
    struct err err = {0};
    int rc = gpu_spec_get(&spec, gpu, &arena, &err);

    for (; !rc && *dbs; dbs++)
        rc = add_samples(&tally, spec, *dbs, &arena, &err);
    ok(!rc, "%s: %zu samples %s", gpu, tally.n[0], err.msg);
    for (size_t c = 0; !rc && c < MAX_INTERVALS; c++) {
        const double share =
            (double)tally.n_within[c] / (double)(tally.n[c] + !tally.n[c]);

        if (tally.n[c] >= LEAST_SAMPLES)
            ok(share >= 0.85 && share <= 0.95 &&
                   (!c || spec->class_error_frac[c] > 0),
               "%s, %s: %.1f %% of %zu within", gpu, interval_classes[c],
               100 * share, tally.n[c]);
    }
    arena_release(&arena);
}

int main(void)
{
    test_gpu("h100", (const char *const[]){"fbgemm-nvidia-h100",
                                           "fbgemm-nvidia-h100-plans", NULL});
    test_gpu("h200", (const char *const[]){"fbgemm-nvidia-h200", NULL});
    test_gpu("cpu", (const char *const[]){"cpu-amd-epyc-2t", NULL});
    return tap_done();
}
