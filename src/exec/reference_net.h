/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_REFERENCE_NET_H
#define NEUROSHARD_EXEC_REFERENCE_NET_H

#include "base/parallel.h"
#include "core/dense.h"

/*
 * Dense part of a model in double precision: forward and backward of some
 * samples. Every sum has a fixed order, so results do not depend on the
 * threads.
 */

struct reference_net {
    const struct dense *dense; /* not owned */
    struct pool *pool;         /* not owned; NULL: no threads */
    double *parameters;        /* [n_parameters], owned */
    double *gradients;         /* [n_parameters], owned */
    /*
     * [n_products][2], or NULL; not owned. Scales of the gradients of the
     * weights and of the bias of each product. The gradient of a parameter is a
     * sum of terms over the samples. Terms may cancel, and ever more of them do
     * while the loss falls, but the rounding errors of single precision are
     * relative to the terms. So a scale is the sum over the samples of an upper
     * limit of the terms: the largest gradient of an output, times the largest
     * input for weights.
     */
    double *scales;
};

/* Allocates parameters and gradients, all 0. */
void reference_net_init(struct reference_net *net, const struct dense *dense,
                        struct pool *pool);
void reference_net_release(struct reference_net *net); /* accepts zeroed */

/* Some samples of the global batch. */
struct reference_samples {
    size_t n;
    const double *features; /* [n][bottom.width[0]] */
    const double *pooled;   /* [n][dense->pooled] */
    const double *labels;   /* [n][width of the last top layer] */
    /* [n][dense->pooled]: output, the gradients of the pooled vectors */
    double *pooled_gradients;
    /*
     * [n_products]: outputs [n][out] of the executed ReLUs, NULL for products
     * without ReLU. The input of a ReLU may be so close to 0 that single
     * precision takes the other side of 0. The gradient jumps there, so both
     * sides are right, and the reference takes the executed side. If `executed`
     * is NULL, it takes its own.
     */
    const float *const *executed;
};

/* Returns the sum of the losses of all outputs of the samples. Adds the
 * gradient of scale * sum to net->gradients, and the sizes of its terms to
 * net->scales. Needs memory for about twice the values of all layers for n
 * samples. */
double reference_net_train(struct reference_net *net,
                           const struct reference_samples *samples,
                           double scale);

/* Returns the index of the first parameter of a product, for product <=
 * n_products. */
uint64_t reference_net_offset(const struct dense *dense, uint32_t product);

#endif
