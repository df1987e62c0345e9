/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_INTERVAL_H
#define NEUROSHARD_COSTMODEL_FORMULAS_INTERVAL_H

#include "costmodel/formulas/features.h"

/*
 * Prediction intervals of a model's times, one for each class of devices. They
 * are split conformal intervals (Papadopoulos et al. 2002; by class, Vovk et
 * al. 2003). The interval is the ceil(0.9 (n + 1))-th smallest error of n
 * samples that the model did not learn from. It covers the next sample in nine
 * of ten cases, whatever the distribution of the errors. An error is the larger
 * of measured and predicted time over the smaller one, minus 1.
 */

/* Facts that determine the class of a device: sums over the tables of the
 * device, and its widest table. The struct must be zero before the first table
 * is added. */
struct device_load {
    double n_tables, n_lookups, batch, n_columns;
    double n_sparse; /* tables with less than one lookup a bag */
};
void device_load_add(struct device_load *load,
                     const struct feature_input *table);

/*
 * Returns the class of a device: the first class in the table whose condition
 * is true. The errors in data/measurements differ between the classes.
 *
 *   few look-ups    below 10,000 lookups a batch
 *   light loads     below 100,000 lookups a batch
 *   few tables      below 5 tables
 *   sparse bags     most tables have less than one lookup a bag
 *   small batches   below 16,384 samples
 *   wide rows       a table of more than 128 columns
 *   usual           all others
 *
 * Coverage on a 2-processor Xeon, where half of the executed plans were light
 * loads:
 *
 *   intervals      light loads  small batches  plans inside
 *   by class       24 %         14 %           82 %
 *   one for both   16 %         16 %           77 %
 */
const char *interval_class(const struct device_load *load);
#define INTERVAL_ALL "all"
#define MAX_INTERVALS 8
/* Names of all classes, NULL-terminated; the first name is INTERVAL_ALL. */
extern const char *const interval_classes[MAX_INTERVALS + 1];
const char *interval_class_of(const struct sample *sample);
/* Returns the index of a class in interval_classes; 0 if there is no such
 * class. */
size_t interval_class_idx(const char *class);

#define INTERVAL_MAX_ERROR 1e6 /* larger errors are clipped to this */
struct interval {
    const char *class;  /* a class, or INTERVAL_ALL */
    const char *ground; /* kind of samples: "held-out samples" */
    uint64_t n;         /* number of samples behind the interval */
    double error_frac;
    /* Interval of the ratio of the times of two samples. The pairs are
     * consecutive samples of the class, so in most pairs both samples have the
     * same setting. */
    double pair_error_frac;
    /* Share of the n evaluated samples that are inside the interval (see
     * evaluate.h). The share is not stored in files. */
    double within_frac;
};
struct interval_list {
    /* Intervals; the interval of all devices comes first. */
    struct interval items[MAX_INTERVALS];
    size_t n;
};

/* Least number of samples with which a class has an interval of its own. */
#define INTERVAL_LEAST 15

/* Makes the intervals from samples[n], their measured times ms[n] and their
 * predicted times predicted[n]. Each sample must have its setting. Errors are
 * multiplied by `scale`, which is 1 if the model itself made the
 * predictions. */
struct interval_list intervals_make(const char *ground,
                                    const struct sample *const *samples,
                                    const double *ms, const double *predicted,
                                    size_t n, double scale);
/* Returns the interval of the class. If the class has no interval of its own,
 * returns the interval of all devices. Returns NULL if there are no
 * intervals. */
const struct interval *interval_find(const struct interval_list *intervals,
                                     const char *class);
double interval_error(double ms, double predicted);

#endif
