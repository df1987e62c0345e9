/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_INTERVAL_H
#define NEUROSHARD_COSTMODEL_INTERVAL_H

#include "costmodel/features.h"

/*
 * Prediction intervals of a model's times, by class of device: split conformal
 * intervals (Papadopoulos et al. 2002; by class, Vovk et al. 2003). The
 * interval is the ceil(0.9 (n + 1))-th smallest error of n samples that the
 * model did not learn from. It covers the next sample in nine of ten cases,
 * whatever the distribution of the errors. An error is the larger of measured
 * and predicted time over the smaller one, minus 1.
 */

/* Facts that determine the class of a device: sums over its tables, and the
 * widest table. Starts as zero. */
struct device_load {
    double n_tables, n_lookups, batch, n_columns;
};
void device_load_add(struct device_load *load,
                     const struct feature_input *table);

/*
 * Returns the class of a device: the first in this table that fits. The errors
 * in data/measurements differ between these classes.
 *
 *   few look-ups    below 10,000 lookups a batch
 *   light loads     below 100,000 lookups a batch
 *   few tables      below 5 tables
 *   small batches   below 16,384 samples
 *   wide rows       a table of more than 128 columns
 *   usual           all others
 *
 * Measured on a 2-processor Xeon, whose executed plans were half light loads:
 *
 *   intervals      light loads  small batches  plans inside
 *   by class       24 %         14 %           82 %
 *   one for both   16 %         16 %           77 %
 */
const char *interval_class(const struct device_load *load);
#define INTERVAL_ALL "all"
#define MAX_INTERVALS 7
/* All names; the first is INTERVAL_ALL. */
extern const char *const interval_classes[MAX_INTERVALS];
const char *interval_class_of(const struct sample *sample);

#define INTERVAL_MAX_ERROR 1e6 /* larger errors are clipped to this */
struct interval {
    const char *class;  /* a class, or INTERVAL_ALL */
    const char *ground; /* "held-out samples" */
    uint64_t n;         /* number of these samples */
    double error_frac;
    /* Interval of the ratio of two times. The pairs are consecutive samples of
     * the class, so most pairs have one setting. */
    double pair_error_frac;
    /* Share of n evaluated samples inside the interval (see evaluate.h). It is
     * not stored in files. */
    double within_frac;
};
struct interval_list {
    /* The interval of all devices comes first. */
    struct interval items[MAX_INTERVALS];
    size_t n;
};

/* Least number of samples for a class to have an interval of its own. */
#define INTERVAL_LEAST 15

/* Makes the intervals from samples[n], each with its setting, with the measured
 * times ms[n] and the predicted times predicted[n]. Errors are multiplied by
 * `scale`, which is 1 if the model itself made the predictions. */
struct interval_list intervals_make(const char *ground,
                                    const struct sample *const *samples,
                                    const double *ms, const double *predicted,
                                    size_t n, double scale);
/* Returns the interval of the class, or else that of all devices; NULL if there
 * are no intervals. */
const struct interval *interval_find(const struct interval_list *intervals,
                                     const char *class);
double interval_error(double ms, double predicted);

#endif
