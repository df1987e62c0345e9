/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_PRODUCT_TIMES_H
#define NEUROSHARD_COSTMODEL_FORMULAS_PRODUCT_TIMES_H

#include "core/product.h"

/*
 * Measured times of matrix products on one device, from which times of other
 * products are predicted.
 *
 * A product is predicted from measured products of its type and form: a single
 * product from single products, a batch from batches. First there is a crude
 * law:
 *
 *     law = latency + work / rate
 *
 * work is the number of multiplications, with rows and columns rounded up to
 * multiples of 8, and a term for each element of the three matrices. latency is
 * the shortest measured time and rate the highest measured work / time. Then
 * the logarithm of time / law is fitted by a linear function of the logarithms
 * of m, n, k and n_batch, by weighted least squares. The weight of a measured
 * product falls with its distance in these logarithms, so the fit is a local
 * one (LOESS; Cleveland, 1979). The fitted ratio is limited to the range of the
 * measured ratios. A measured product has its measured time.
 */

#define PRODUCT_TIMES_MAX 8192
/* Shortest time in ms, and largest error. */
#define PRODUCT_TIMES_MIN_MS 1e-9
#define PRODUCT_TIMES_MAX_ERROR 1e6

struct product_time {
    struct product product;
    double ms; /* >= PRODUCT_TIMES_MIN_MS */
};

struct product_times {
    struct product_time *items; /* [n] */
    size_t n;
    /* Errors of the measured products, each predicted from the others: the
     * median, and the error that nine in ten do not exceed (like frac of struct
     * cost_error). */
    double median_error_frac, error_frac;
};

/* Least number of measured products of a type and form from which others are
 * predicted. */
#define PRODUCT_TIMES_LEAST 3
/* Returns true if products of this type can be predicted: at least
 * PRODUCT_TIMES_LEAST single products of each of the forms nn, nt and tn were
 * measured. fp16 products have the times of bf16. */
bool product_times_have(const struct product_times *times,
                        enum dense_type type);
/* Returns true if batches can be predicted: at least PRODUCT_TIMES_LEAST
 * batches of each of the forms nt and nn were measured. */
bool product_times_have_batches(const struct product_times *times,
                                enum dense_type type);

/* Returns true if operations on elements can be predicted: at least
 * PRODUCT_TIMES_LEAST of each form were measured, all in fp32. */
bool product_times_have_elements(const struct product_times *times);

/* Returns the time of a product in ms, or NAN if there is no measured product
 * of its type and form. */
double product_times_ms(const struct product_times *times,
                        const struct product *product);
/* Returns the time of measured product `idx` in ms as predicted from the
 * others; NAN if there are no others of its type and form. */
double product_times_without(const struct product_times *times, size_t idx);

#endif
