/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_INTERVAL_H
#define NEUROSHARD_COSTMODEL_INTERVAL_H

#include "costmodel/features.h"

/*
 * How far a model's times of devices are off, by class of device: split
 * conformal intervals (Papadopoulos et al. 2002; by class, Vovk et al. 2003).
 * Of n samples that the model did not learn from, the ceil(0.9 (n + 1))-th
 * smallest error holds the next one's in nine cases of ten, however errors are
 * distributed. An error is what the larger of measured and predicted time is
 * over the smaller one, less 1.
 */

/* What a device's class goes by: the sums over its tables, and the widest;
 * starts as zero. */
struct device_load {
    double n_tables, n_lookups, batch, n_columns;
};
void device_load_add(struct device_load *load,
                     const struct feature_input *table);

/* The first that fits of "few look-ups" (below 10,000 a batch), "light loads"
 * (below 100,000), "few tables" (below 5), "small batches" (below 16,384),
 * "wide rows" (a table of more than 128 columns) and "usual": errors of
 * data/measurements differ by them. Light loads of a 2-processor Xeon were off
 * by 24 %, small batches by 14 %; of executed plans, half of them light, 82 %
 * lay within these and 77 % within the 16 % of both. */
const char *interval_class(const struct device_load *load);
#define INTERVAL_ALL "all"
#define MAX_INTERVALS 7
/* INTERVAL_ALL the first. */
extern const char *const interval_classes[MAX_INTERVALS];
const char *interval_class_of(const struct sample *sample);

#define INTERVAL_MAX_ERROR 1e6 /* larger ones count as that */
struct interval {
    const char *class; /* or INTERVAL_ALL */
    const char *of;    /* "held-out samples" */
    uint64_t n;        /* of those */
    double error_frac;
    /* The same of the ratio of two times: of samples of the class that follow
     * each other, so mostly of one setting. */
    double pair_error_frac;
    double within_frac; /* of n that were looked at: evaluate.h; in no file */
};
struct interval_list {
    struct interval at[MAX_INTERVALS]; /* that of all first */
    size_t n;
};

/* A class of fewer has none of its own. */
#define INTERVAL_LEAST 15

/* Of samples[n], each with its setting, that took ms[n]; errors count times
 * `scale`, 1 where the model itself says. */
struct interval_list intervals_make(const char *of,
                                    const struct sample *const *samples,
                                    const double *ms, const double *says,
                                    size_t n, double scale);
/* That of the class, or of all; NULL where there is none. */
const struct interval *interval_find(const struct interval_list *intervals,
                                     const char *class);
double interval_error(double ms, double says);

#endif
