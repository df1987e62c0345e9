/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PRODUCT_H
#define NEUROSHARD_CORE_PRODUCT_H

#include "core/dense.h"
#include "core/sample.h"

/*
 * Matrix products of a dense part and operations on elements, and their
 * measured times. All matrices are row-major.
 */

/* Stored forms of the two factors of a product c[m][n] = op(a)[m][k] *
 * op(b)[k][n]. The first letter stands for a, the second for b. N: stored as it
 * is multiplied; T: stored transposed, a as [k][m] or b as [n][k].
 *
 * Two more forms are no products but the operations on the elements of the
 * output c[m][n] of a layer. k is 1, and the type is fp32.
 *
 *   RELU           the sum with the bias, and the ReLU
 *   RELU_GRADIENT  their gradients
 * */
enum product_form {
    PRODUCT_NN,
    PRODUCT_NT,
    PRODUCT_TN,
    PRODUCT_RELU,
    PRODUCT_RELU_GRADIENT,
    N_PRODUCT_FORMS
};
extern const char *const product_form_names[]; /* NULL-terminated */

/* A batch of products of one shape. */
struct product {
    enum dense_type type;
    enum product_form form;
    uint32_t m, n, k; /* >= 1 */
    uint32_t n_batch; /* >= 1 */
};

/* The measured time of a batch. */
struct product_sample {
    struct product product;
    struct timing timing;
    uint32_t n_iterations;
    unsigned flags; /* 0 or SAMPLE_THROTTLED */
};

bool product_is_same(const struct product *x, const struct product *y);
/* Returns the number of additions and multiplications of a batch. */
double product_operations(const struct product *product);
/* Returns the bytes of the matrices of a batch: a and b in the type of the
 * product, and c in fp32. */
double product_bytes(const struct product *product);

/* Passes of a layer, each with one product. A layer with n_in inputs and n_out
 * outputs has weights [n_out][n_in], as in PyTorch:
 *
 *     pass             form  result          sum over
 *     forward          NT    [samples][n_out]  n_in
 *     input gradient   NN    [samples][n_in]   n_out
 *     weight gradient  TN    [n_out][n_in]     samples
 */
enum dense_pass {
    DENSE_FORWARD,
    DENSE_INPUT_GRADIENT,
    DENSE_WEIGHT_GRADIENT,
    N_DENSE_PASSES
};
struct product dense_layer_product(const struct dense *dense,
                                   const struct dense_product *layer,
                                   enum dense_pass pass, uint32_t n_samples);
/* Returns the operations on the elements of a layer's output, in the form
 * PRODUCT_RELU or PRODUCT_RELU_GRADIENT. */
struct product dense_relu(enum product_form form, uint32_t n_samples,
                          uint32_t n_out);
/* Returns the products of all pairs of vectors of INTERACTION_DOT: one product
 * for each sample. The pass is the forward or the input gradient. The input
 * gradient consists of two such products. */
struct product dense_dot_product(const struct dense *dense,
                                 enum dense_pass pass, uint32_t n_samples);

/* Largest number of shapes in a step. */
#define DENSE_MAX_SHAPES ((N_DENSE_PASSES + 2) * DENSE_MAX_PRODUCTS + 2)
/* Fills products[DENSE_MAX_SHAPES] with the shapes of a step of n_samples, each
 * once: the products of all passes, layer by layer, then the operations on
 * elements, then the products of pairs. Returns their number. The dense part
 * must be fitted (dense_fit). */
size_t dense_products(struct product *products, const struct dense *dense,
                      uint32_t n_samples);

#endif
