/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_STATS_H
#define NEUROSHARD_BASE_STATS_H

#include <stddef.h>

/* Statistics of doubles. Sums are kept in double. Every result is NAN if n ==
 * 0. */

double stats_mean(const double *x, size_t n);
/* Returns quantile q in [0, 1] by linear interpolation (R type 7). Sorts x in
 * place. */
double stats_quantile(double *x, size_t n, double q);
double stats_median(double *x,
                    size_t n); /* returns the median; sorts x in place */
/* Returns the mean squared error of `got` against `want`. */
double stats_mse(const double *want, const double *got, size_t n);
/* Writes the absolute percentage error |got - want| / |want| of each pair of
 * values, as a fraction. No value of `want` may be 0. */
void stats_apes(double *apes, const double *want, const double *got, size_t n);
/* Returns Kendall's tau-b in O(n^2): 10,000 pairs take a tenth of a second. */
double stats_kendall_tau(const double *x, const double *y, size_t n);

#endif
