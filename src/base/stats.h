/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_STATS_H
#define NEUROSHARD_BASE_STATS_H

#include <stddef.h>

/* Statistics over doubles; sums in double; n == 0 gives NAN. */

double stats_mean(const double *x, size_t n);
/* Quantile q in [0, 1] by linear interpolation (R type 7); x is sorted in
 * place. */
double stats_quantile(double *x, size_t n, double q);
double stats_median(double *x, size_t n); /* sorts x in place */
/* Mean squared error of got against want. */
double stats_mse(const double *want, const double *got, size_t n);
/* |got - want| / |want| of each, as fractions; want != 0. */
void stats_apes(double *apes, const double *want, const double *got, size_t n);
/* Kendall's tau-b in O(n^2): 10,000 take a tenth of a second. */
double stats_kendall_tau(const double *x, const double *y, size_t n);

#endif
