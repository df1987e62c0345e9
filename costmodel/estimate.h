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
 *
 *     tables, bags, rows         of a device; bags: vectors written
 *     lookups, unique            a batch
 *     state_rows                 unique rows with a state of the optimizer
 *     gather_kib, unique_kib, output_kib   bytes read, distinct, written
 *     over_32 ... over_256       tables of more columns: FBGEMM's kernels are
 *                                compiled for the widest of an operation, and
 *                                slow for narrow ones beside it
 *
 * A model file lists the names of its totals.
 */

#define MAX_TOTALS 16

struct total_set {
    unsigned n;
    unsigned char ids[MAX_TOTALS]; /* private numbering */
};

/* All that this program knows. */
void total_set_standard(struct total_set *set);
/* Appends a total by name; false for an unknown, repeated or surplus one. */
bool total_set_add(struct total_set *set, const char *name);
/* Name of the i-th total of the set; a constant. */
const char *total_set_name(const struct total_set *set, unsigned i);
/* What one table or piece adds: out[set->n], each >= 0. */
void total_set_fill(const struct total_set *set,
                    const struct feature_input *input, double *out);

struct estimate {
    struct total_set totals; /* none: there is no estimate, the net says ms */
    double mean[MAX_TOTALS], std[MAX_TOTALS]; /* of log2(1 + total); std > 0 */
    double rate_ms[MAX_TOTALS];               /* a unit, >= 0 */
    double base_ms;                           /* of any device, > 0 */
    double ratio_min, ratio_max; /* measured over estimated, in training */
};

/* Non-negative rates by least squares of the relative error, and the rest:
 * sums[n][totals.n] of n >= 1 devices that took ms[n] > 0. Which totals they
 * are is given in estimate->totals. */
void estimate_fit(struct estimate *estimate, const double *sums,
                  const double *ms, size_t n);
/* The rates times what a table or a device adds up to, without base_ms. */
double estimate_added_ms(const struct estimate *estimate, const double *totals);
/* ratio, which a net gave, within the range of training; lets NaN through. */
double estimate_bound(const struct estimate *estimate, double ratio);

#endif
