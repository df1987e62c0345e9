/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_ESTIMATE_H
#define NEUROSHARD_COSTMODEL_FORMULAS_ESTIMATE_H

#include "costmodel/formulas/features.h"
#include "costmodel/formulas/gpu_spec.h"

/*
 * First estimate of a device's time, which a net may correct. It has one of two
 * forms:
 *
 * - a constant, and a rate for each of a few totals, which are facts that add
 *   up over the tables of a device;
 * - the roofline of a GPU (costmodel/formulas/roofline.h) times powers of the
 *   totals. This form needs fewer measurements
 *   (costmodel/learning/roofline_fit.h).
 *
 * The net predicts measured over estimated time. Its answer is clamped to the
 * range in the training set. So the price of a device that is larger than any
 * measured device is about its estimate. A search then finds no devices that
 * the net prices far too low.
 *
 * A monotone net (costmodel/formulas/mlp.h) predicts log2(1 + price in us). Its
 * head takes the sum of embeddings, the totals and the estimate. A table
 * weights its embedding by its time in the estimate, and all of these never
 * fall if a table is added. So no set of tables is cheaper than a part of it.
 * Features describe a table as if its weights were fp32. The precision
 * changes the estimate and the totals, which never grow as the weights get
 * narrower. So a narrower precision is never dearer.
 *
 * The head of any other net has two inputs: the sum of embeddings, and the
 * totals in the form (log2(1 + total) - mean) / std. It needs the totals for
 * costs that depend on a sum and not on single tables. An example is the number
 * of passes of one sort over all rows of a device.
 */

struct estimate {
    /* GPU of the roofline. If it has no name, the estimate uses rates
     * instead. */
    struct gpu_spec gpu;
    /* Totals that the estimate uses, with their rates >= 0 or, for a roofline,
     * their powers. If there are no totals, there is no estimate, and the net
     * predicts ms. */
    struct feature_set totals;
    /* Constant time of any device, > 0; not used with a roofline. */
    double base_ms;
    /* Range of the ratio of measured to estimated time in training. */
    double ratio_min, ratio_max;
    /* True if a net on this estimate is monotone. */
    bool is_monotone;
};

/* Vectors of the estimate, which add up over tables: the totals, followed by
 * the lanes of a roofline. estimate_width returns the length of a vector.
 * estimate_fill fills the vector of one table and stores the roofline's parts
 * in the input. For a monotone net, a
 * table without lookups adds nothing. */
size_t estimate_width(const struct estimate *estimate);
void estimate_fill(const struct estimate *estimate, struct feature_input *input,
                   double *out);

/* Fills the features of one table, as a net on the estimate sees them, and its
 * vector of the estimate. */
void estimate_describe(const struct estimate *estimate,
                       const struct feature_set *features,
                       const struct feature_input *input, double *row,
                       double *vector);

/* Returns the time of a table or a device as given by the rates or the
 * roofline, without base_ms and without the powers. Returns 1 if there is no
 * estimate. */
double estimate_added_ms(const struct estimate *estimate, const double *sums);
/* Returns the estimated time of a device with these totals, in ms. This time is
 * the unit of a net's answer. It is 1 ms if there is no estimate. */
double estimate_ms(const struct estimate *estimate, const double *sums);
/* Limits a net's answer, the ratio of measured to estimated time, to its range
 * in training. Does nothing if there is no estimate. NaN is passed through. */
double estimate_bound(const struct estimate *estimate, double ratio);

/* Last inputs of a monotone net's head, as logarithms log2(1 + x): the estimate
 * in us, the batch, and 1 if any table's optimizer has a state. All tables of a
 * set share batch and state, so the price may also fall with these two. */
enum { HEAD_ESTIMATE, HEAD_BATCH, HEAD_STATE, HEAD_CONTEXT };
/* Number of inputs of a net's head in addition to the sum of embeddings: the
 * totals and, for a monotone net, its last inputs. */
uint32_t estimate_head_inputs(const struct estimate *estimate);
/* Returns the weight of a table's embedding in the sum. `share` is the share of
 * the table in the estimate of its device, which is unit_ms. */
double estimate_weight(const struct estimate *estimate, double share,
                       double unit_ms);
/* Returns the ratio of the price to the estimate unit_ms, given the answer of a
 * net's head. The ratio is within its range in training. */
double estimate_ratio(const struct estimate *estimate, double answer,
                      double unit_ms);

#endif
