/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_ESTIMATE_H
#define NEUROSHARD_COSTMODEL_ESTIMATE_H

#include "costmodel/features.h"
#include "costmodel/gpu_spec.h"

/*
 * First estimate of a device's time, which a net may correct. It has one of two
 * forms:
 *
 * - a constant, and a rate for each of a few totals, which are facts that add
 *   up over the tables of a device;
 * - the roofline of a GPU (costmodel/roofline.h) times powers of the totals.
 *   This form needs fewer measurements (costmodel/roofline_fit.h).
 *
 * The net predicts measured over estimated time. Its answer is clamped to the
 * range in the training set. So a device that is larger than any measured one
 * costs about its estimate, and a search finds no holes in the cost.
 *
 * The head of the net has two inputs: the sum of embeddings, and the totals as
 * (log2(1 + total) - mean) / std. It needs the totals for costs that depend on
 * a sum and not on single tables, as the passes of one sort over all rows of a
 * device do.
 */

struct estimate {
    /* GPU of a roofline; without a name the form is by rates. */
    struct gpu_spec gpu;
    /* Totals with their rates >= 0, or with their powers. If there are no
     * totals, there is no estimate, and the net predicts ms. */
    struct feature_set totals;
    /* Constant time of any device, > 0; not used with a roofline. */
    double base_ms;
    /* Range of measured over estimated time in training. */
    double ratio_min, ratio_max;
};

/* Vectors that add up over tables: the totals, followed by the lanes of a
 * roofline. estimate_width is their length. estimate_fill fills the vector of
 * one table and stores the roofline's parts in the input. */
size_t estimate_width(const struct estimate *estimate);
void estimate_fill(const struct estimate *estimate, struct feature_input *input,
                   double *out);

/* Fits non-negative rates by least squares of the relative error, and all other
 * members. sums[n][totals.n] are the totals of n >= 1 devices that took ms[n] >
 * 0. estimate->totals names the totals. */
void estimate_fit(struct estimate *estimate, const double *sums,
                  const double *ms, size_t n);
/* Sets the range of measured over estimated time to that of sums[n][width]. */
void estimate_set_range(struct estimate *estimate, const double *sums,
                        const double *ms, size_t n);
/* Returns the time of a table or a device by the rates or the roofline, without
 * base_ms and powers; 1 if there is no estimate. */
double estimate_added_ms(const struct estimate *estimate, const double *sums);
/* Returns the estimated time of a device with these totals, in ms. It is the
 * unit of a net's answer: 1 ms if there is no estimate. */
double estimate_ms(const struct estimate *estimate, const double *sums);
/* Clamps a net's answer to the range in training, if there is an estimate. NaN
 * is passed through. */
double estimate_bound(const struct estimate *estimate, double ratio);

#endif
