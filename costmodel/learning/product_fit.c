/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/product_fit.h"

#include "base/stats.h"

#include <math.h>

#define DIGITS 5
/* Share of the products that the error covers. */
#define COVERED 0.9

static double rounded(double x)
{
    const double unit = pow(10, floor(log10(x)) + 1 - DIGITS);

    return round(x / unit) * unit;
}

/* Finds the errors of the products, each predicted from the others. */
static void judge(struct product_times *times, struct arena *arena)
{
    double *errors = ARENA_NEW(arena, double, times->n);
    size_t n = 0;

    for (size_t i = 0; i < times->n; i++) {
        const double ms = times->items[i].ms;
        const double predicted = product_times_without(times, i);

        if (isfinite(predicted))
            errors[n++] = fmin(fmax(ms, predicted) / fmin(ms, predicted) - 1,
                               PRODUCT_TIMES_MAX_ERROR);
    }
    times->error_frac = n ? stats_quantile(errors, n, COVERED) : 0;
    times->median_error_frac = n ? stats_median(errors, n) : 0;
}

size_t product_fit(struct product_times *times,
                   const struct product_sample *samples, size_t n,
                   bool takes_disturbed, struct arena *arena)
{
    const size_t n_most = n < PRODUCT_TIMES_MAX ? n : PRODUCT_TIMES_MAX;

    *times = (struct product_times){0};
    times->items = ARENA_NEW(arena, struct product_time, n_most);
    for (size_t i = 0; i < n && times->n < n_most; i++)
        if (samples[i].timing.median_ms >= PRODUCT_TIMES_MIN_MS &&
            (takes_disturbed || !(samples[i].flags & SAMPLE_THROTTLED)))
            times->items[times->n++] = (struct product_time){
                samples[i].product, rounded(samples[i].timing.median_ms)};
    judge(times, arena);
    return n - times->n;
}
