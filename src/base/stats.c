/* SPDX-License-Identifier: MIT */
#include "base/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

double stats_mean(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return n ? sum / (double)n : NAN;
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double stats_quantile(double *x, size_t n, double q)
{
    double place, frac;
    size_t i;

    if (!n)
        return NAN;
    qsort(x, n, sizeof *x, compare_doubles);
    place = q * (double)(n - 1);
    i = (size_t)place;
    if (i + 1 >= n)
        return x[n - 1];
    frac = place - (double)i;
    return x[i] + frac * (x[i + 1] - x[i]);
}

double stats_median(double *x, size_t n)
{
    return stats_quantile(x, n, 0.5);
}

double stats_mse(const double *want, const double *got, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (got[i] - want[i]) * (got[i] - want[i]);
    return n ? sum / (double)n : NAN;
}

void stats_apes(double *apes, const double *want, const double *got, size_t n)
{
    for (size_t i = 0; i < n; i++)
        apes[i] = fabs(got[i] - want[i]) / fabs(want[i]);
}

/* Compares each pair of samples directly. This is fast enough, because an
 * evaluation has only thousands of samples. */
double stats_kendall_tau(const double *x, const double *y, size_t n)
{
    int64_t sum = 0, n_x = 0,
            n_y = 0; /* n_x, n_y: number of pairs that differ in x, in y */
    double scale;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            const int by_x = (x[i] > x[j]) - (x[i] < x[j]);
            const int by_y = (y[i] > y[j]) - (y[i] < y[j]);

            sum += by_x * by_y;
            n_x += by_x != 0;
            n_y += by_y != 0;
        }
    scale = sqrt((double)n_x) * sqrt((double)n_y);
    /* The result is clamped because the square roots are rounded. */
    return scale > 0 ? fmax(-1, fmin(1, (double)sum / scale)) : NAN;
}
