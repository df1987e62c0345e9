/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_ESTIMATE_H
#define NEUROSHARD_COSTMODEL_ESTIMATE_H

#include "costmodel/features.h"

/*
 * The first guess of a device's time, which a net corrects: a constant and a
 * rate for each of a few totals, facts that add up over the tables of a
 * device. The net says measured over estimated, within the range that training
 * saw, so that a device larger than any measured one costs what the rates say,
 * about, and a search finds no holes. Beside the sum of embeddings a head sees
 * the totals as (log2(1 + total) - mean) / std: what depends on a sum, like
 * the passes of one sort over all rows of a device, no table knows.
 */

struct estimate {
    struct feature_set totals;   /* with their rates, >= 0; none: there is no
                                    estimate, the net says ms */
    double base_ms;              /* of any device, > 0 */
    double ratio_min, ratio_max; /* measured over estimated, in training */
};

/* Non-negative rates by least squares of the relative error, and the rest:
 * sums[n][totals.n] of n >= 1 devices that took ms[n] > 0. Which totals they
 * are is given in estimate->totals. */
void estimate_fit(struct estimate *estimate, const double *sums,
                  const double *ms, size_t n);
/* The rates times what a table or a device adds up to, without base_ms. */
double estimate_added_ms(const struct estimate *estimate, const double *totals);
/* What a device of these totals is estimated at: the unit of a net's answer, 1
 * ms where there is no estimate. */
double estimate_ms(const struct estimate *estimate, const double *totals);
/* ratio, which a net gave, within the range of training, where there is an
 * estimate; lets NaN through. */
double estimate_bound(const struct estimate *estimate, double ratio);

#endif
