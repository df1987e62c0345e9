/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_ELEMENTWISE_H
#define NEUROSHARD_DEVICE_ELEMENTWISE_H

#include "device/device.h"

EXTERN_C_BEGIN

/*
 * Element-wise operations of dense layers, on row-major fp32 matrices. Each
 * operation computes n_rows x n_cols elements (r, j). In the list below, out,
 * a, b and c stand for the elements (r, j) of these matrices.
 *
 *     COPY            out = a
 *     ADD             out += a
 *     COPY_FROM_HALF  like COPY, but the elements of a are fp16
 *     ADD_FROM_HALF   like ADD, but the elements of a are fp16
 *     COPY_TO_HALF    like COPY, but the elements of out are fp16
 *     BIAS_RELU       out = max(out + a, 0)
 *     RELU_GRADIENT   out = 0 where a, the output of the ReLU, is not positive
 *     MULTIPLY        out = a b
 *     MULTIPLY_ADD    out = a b + c
 *     ADD_PRODUCT     out += a b
 *     PAIRS           Keeps the elements below the diagonal of the matrix
 *                     a[size][size] of each row. n_cols is size x size. Element
 *                     (k, l), k > l, becomes column k (k - 1) / 2 + l of out.
 *     PAIRS_GRADIENT  the reverse: the elements (k, l) and (l, k) of the matrix
 *                     out[size][size] of each row are a's column
 *                     k (k - 1) / 2 + l. The diagonal is 0.
 *     MEANS           Splits the n_in columns of a into runs of `size` columns.
 *                     The last run may be shorter. out = mean of run j.
 *     MEANS_GRADIENT  out = a's column j / size, divided by the length of the
 *                     run of column j. n_cols equals n_in.
 *     LOSS            out = binary cross entropy of the logit a and the label b
 *     LOSS_GRADIENT   out = scale x (sigmoid(a) - b)
 *     SGD             out -= scale x a; a is the gradient
 *     ADAGRAD         state[0] += a a
 *                     out -= scale x a / (sqrt(state[0]) + eps)
 *     ADAM            Adam's rule, with the moments in state[0] and state[1].
 *                     `scale` is the learning rate divided by 1 - beta1^t, and
 *                     `root` is the square root of 1 - beta2^t, in step t >= 1.
 *     SCALE           out = scale x a
 *     AVERAGE         out = mean of `size` rows of a, added in their order.
 *                     n_rows is 1, and out may be the first row of a.
 *     AVERAGE_HALF    like AVERAGE, but the elements of a and out are fp16
 *
 * All devices give the same bits, except for LOSS and LOSS_GRADIENT: libraries
 * differ in the exponential function.
 */
#define ELEMENTWISE_KINDS(KIND) \
    KIND(COPY)                  \
    KIND(ADD)                   \
    KIND(COPY_FROM_HALF)        \
    KIND(ADD_FROM_HALF)         \
    KIND(COPY_TO_HALF)          \
    KIND(BIAS_RELU)             \
    KIND(RELU_GRADIENT)         \
    KIND(MULTIPLY)              \
    KIND(MULTIPLY_ADD)          \
    KIND(ADD_PRODUCT)           \
    KIND(PAIRS)                 \
    KIND(PAIRS_GRADIENT)        \
    KIND(MEANS)                 \
    KIND(MEANS_GRADIENT)        \
    KIND(LOSS)                  \
    KIND(LOSS_GRADIENT)         \
    KIND(SGD)                   \
    KIND(ADAGRAD)               \
    KIND(ADAM)                  \
    KIND(SCALE)                 \
    KIND(AVERAGE)               \
    KIND(AVERAGE_HALF)
#define ELEMENTWISE_ENUMERATOR(name) ELEMENTWISE_##name,
enum elementwise_kind {
    ELEMENTWISE_KINDS(ELEMENTWISE_ENUMERATOR) N_ELEMENTWISE
};

/* Constants of the update rules: the defaults of PyTorch. */
#define ELEMENTWISE_ADAGRAD_EPS 1e-10f
#define ELEMENTWISE_ADAM_EPS 1e-8f
#define ELEMENTWISE_ADAM_BETA1 0.9f
#define ELEMENTWISE_ADAM_BETA2 0.999f

/* A matrix in the device's memory. `stride` is the number of elements from one
 * row to the next; 0 if all rows are the same. */
struct device_matrix {
    void *d_at;
    uint64_t stride;
};

struct elementwise {
    enum elementwise_kind kind;
    uint64_t n_rows, n_cols;
    /* Operands. Except for PAIRS, MEANS and their gradients, `out` may be the
     * same matrix as a, b or c. The matrices must not overlap otherwise. */
    struct device_matrix out, a, b, c;
    float *d_state[2]; /* states of the optimizer, in the layout of `out` */
    /* used by PAIRS, MEANS, their gradients and AVERAGE; >= 1 */
    uint64_t size;
    uint64_t n_in; /* used by MEANS and MEANS_GRADIENT */
    float scale, root;
};

/* Queues an operation. Fails with ERR_DEVICE. */
int device_elementwise(struct device *device, const struct elementwise *job,
                       struct err *err) MUST_CHECK;

EXTERN_C_END

#endif
