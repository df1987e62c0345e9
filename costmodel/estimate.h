/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_ESTIMATE_H
#define NEUROSHARD_COSTMODEL_ESTIMATE_H

#include "costmodel/features.h"
#include "costmodel/gpu_spec.h"

/*
 * The first guess of a device's time, which a net may correct, in one of two
 * forms: a constant and a rate for each of a few totals, facts that add up over
 * the tables of a device; or the roofline of a GPU (costmodel/roofline.h) times
 * powers of the totals, which needs fewer measurements (costmodel/
 * roofline_fit.h). The net says measured over estimated, within the range that
 * training saw, so that a device larger than any measured one costs what the
 * rates say, about, and a search finds no holes. Beside the sum of embeddings a
 * head sees the totals as (log2(1 + total) - mean) / std: what depends on a
 * sum, like the passes of one sort over all rows of a device, no table knows.
 */

struct estimate {
    struct gpu_spec gpu;         /* of a roofline; without a name the form is
                                    the other one */
    struct feature_set totals;   /* with their rates, >= 0, or their powers;
                                    none: there is no estimate, the net says
                                    ms */
    double base_ms;              /* of any device, > 0; not with a roofline */
    double ratio_min, ratio_max; /* measured over estimated, in training */
};

/* What tables add up to: the totals, and behind them the lanes of a roofline,
 * whose parts become the input's.
 */
size_t estimate_width(const struct estimate *estimate);
void estimate_fill(const struct estimate *estimate, struct feature_input *input,
                   double *out);

/* Non-negative rates by least squares of the relative error, and the rest:
 * sums[n][totals.n] of n >= 1 devices that took ms[n] > 0. Which totals they
 * are is given in estimate->totals. */
void estimate_fit(struct estimate *estimate, const double *sums,
                  const double *ms, size_t n);
/* The ratio's range, over sums[n][width]. */
void estimate_set_range(struct estimate *estimate, const double *sums,
                        const double *ms, size_t n);
/* What a table or a device adds up to by the rates or the roofline, without
 * base_ms and powers; 1 where there is no estimate. */
double estimate_added_ms(const struct estimate *estimate, const double *sums);
/* What a device of these totals is estimated at: the unit of a net's answer, 1
 * ms where there is no estimate. */
double estimate_ms(const struct estimate *estimate, const double *sums);
/* ratio, which a net gave, within the range of training, where there is an
 * estimate; lets NaN through. */
double estimate_bound(const struct estimate *estimate, double ratio);

#endif
