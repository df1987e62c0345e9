/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_DENSE_NET_H
#define NEUROSHARD_EXEC_DENSE_NET_H

#include "core/dense.h"
#include "device/elementwise.h"
#include "device/gemm.h"

/*
 * One rank's copy of the dense part of a model, in the device's memory: forward
 * pass, loss, backward pass and update, in fp32. On a GPU the products may be
 * computed in TF32.
 *
 * The loss is the binary cross entropy of the outputs of the last layer, in the
 * mean over all outputs and the *global* batch. So the gradients of all ranks
 * have to be added up, not averaged.
 *
 * Parameters are stored one product after the other, in the order of
 * dense->products: the weights [out][in], then the bias [out] if there is one.
 */

/* A product and the matrices that it uses, one row per sample. */
struct dense_layer {
    const struct dense_product *product;
    float *d_in, *d_out;
    /* d_in_gradient is NULL if the input needs no gradient. */
    float *d_in_gradient, *d_out_gradient;
    float *d_weight, *d_bias; /* NULL if the product has no bias */
    float *d_weight_gradient, *d_bias_gradient;
};

struct dense_net {
    const struct dense *dense;
    struct device *device;     /* not owned */
    struct gemm_library *blas; /* not owned */
    uint32_t n_samples;        /* samples of this rank; may be 0 */
    enum optimizer optimizer;  /* SGD, Adagrad or Adam */
    float rate;                /* learning rate */
    unsigned n_steps;          /* number of updates so far */
    struct dense_layer layers[DENSE_MAX_PRODUCTS];
    /* [n_parameters] each; only Adam has two states, and SGD has none */
    float *d_parameters, *d_gradients, *d_state[2];
    float *d_features; /* [n_samples][bottom.width[0]] */
    /* [n_samples][last width]: labels, outputs and losses */
    float *d_labels, *d_logits, *d_losses;
    /* [n_samples][dense->pooled]: pooled vectors of the tables, which the
     * caller writes before the forward pass, and their gradients */
    struct device_matrix pooled, pooled_gradient;
    /* The members below are intermediate results. */
    /* [n_samples][width]: output of the interaction, and its gradient. It is
     * the input of the cross layers or, without cross layers, of the top
     * layers. */
    float *d_joined, *d_joined_gradient;
    /* [n_cross + 1][n_samples][width]: d_joined, then the output of each cross
     * layer. The last is the input of the top layers. */
    float *d_crossed;
    /* [n_samples][width]: gradient of the input of the top layers, then of each
     * cross layer. Without cross layers it is d_joined_gradient. */
    float *d_crossed_gradient;
    /* dot: [n_samples][n_vectors][dim] vectors and their gradients, and their
     * products [n_samples][n_vectors][n_vectors] */
    float *d_vectors, *d_vectors_gradient, *d_products;
    float *d_ones; /* [n_samples] ones, to add up the gradients of a bias */
    char *d_block; /* memory of all matrices; owned */
};

/* Returns the bytes of device memory that dense_net_open allocates. */
size_t dense_net_bytes(const struct dense *dense, uint32_t n_samples,
                       enum optimizer optimizer);
/* Allocates a net. The parameters, features and labels are not set; the states
 * of the optimizer are 0. Fails with ERR_DEVICE if the memory does not fit. */
int dense_net_open(struct dense_net *net, const struct dense *dense,
                   uint32_t n_samples, enum optimizer optimizer, float rate,
                   struct device *device, struct gemm_library *library,
                   struct err *err) MUST_CHECK;
void dense_net_close(struct dense_net *net); /* accepts a zeroed struct */

/* The three parts of a step. They queue their work on the device, and fail with
 * ERR_DEVICE.
 *
 *   forward   computes the outputs and losses of the samples
 *   backward  computes the gradients of the parameters and of the pooled
 *             vectors. n_global: number of samples of all ranks.
 *   update    changes the parameters by the gradients, which the caller has
 *             added up over all ranks
 */
int dense_net_forward(struct dense_net *net, struct err *err) MUST_CHECK;
int dense_net_backward(struct dense_net *net, uint64_t n_global,
                       struct err *err) MUST_CHECK;
int dense_net_update(struct dense_net *net, struct err *err) MUST_CHECK;

#endif
