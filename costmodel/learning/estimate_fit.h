/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_ESTIMATE_FIT_H
#define NEUROSHARD_COSTMODEL_LEARNING_ESTIMATE_FIT_H

#include "costmodel/formulas/estimate.h"

/* Fits estimates to measured devices. */

/* Fits the non-negative rates by least squares of the relative error, and fills
 * all other members of the estimate. estimate->totals must name the totals.
 * sums[n][totals.n] are the totals of n >= 1 devices, and ms[n] > 0 their
 * times. */
void estimate_fit(struct estimate *estimate, const double *sums,
                  const double *ms, size_t n);
/* Sets the range of measured over estimated time from n devices, with the
 * vectors sums[n][width] and the measured times ms[n]. */
void estimate_set_range(struct estimate *estimate, const double *sums,
                        const double *ms, size_t n);

#endif
