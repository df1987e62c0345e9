/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_REFERENCE_INTERACTION_H
#define NEUROSHARD_EXEC_REFERENCE_INTERACTION_H

#include "core/dense.h"

/*
 * Interaction of one sample in double precision. The output has dense->width
 * values:
 *
 *     cat, dcn   the bottom layers' output, then all pooled values. The cross
 *                layers of dcn are no part of the functions below.
 *     dot        the bottom layers' output, then the products v_i . v_j for
 *                i > j at index i (i - 1) / 2 + j. v_0 is the bottom layers'
 *                output if there are bottom layers, and then come the pooled
 *                vectors.
 *     pool       the bottom layers' output, then the means of dense->stride
 *                consecutive pooled values. The last mean is over the values
 *                that are left.
 *
 * Shapes: bottom[dense_bottom_width], not read if there are no dense
 * features; pooled[dense->pooled]; out[dense->width].
 */
void reference_interact(const struct dense *dense, const double *bottom,
                        const double *pooled, double *out);
/* Overwrites the gradients of both inputs, in the shapes of the inputs, from
 * the gradient of the output. */
void reference_interact_back(const struct dense *dense, const double *bottom,
                             const double *pooled, const double *out_gradient,
                             double *bottom_gradient, double *pooled_gradient);

#endif
