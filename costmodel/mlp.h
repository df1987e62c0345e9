/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MLP_H
#define NEUROSHARD_COSTMODEL_MLP_H

#include "base/rng.h"
#include "costmodel/fast_mlp.h"

/*
 * The published net shape, for training: a table MLP (two layers, ReLU after
 * both), the sum over the tables of a sample, a head (one hidden ReLU layer,
 * one output). A sum may be weighted, and the head may see totals t of the
 * sample beside it.
 *
 *     h1 = relu(x w1' + b1)         h2 = relu(h1 w2' + b2)
 *     s  = sum of weight h2         h3 = relu([s t] w3' + b3)
 *     y  = h3 w4' + b4
 */

/* As published, with 20 features. */
#define MLP_HIDDEN 128
#define MLP_EMBED 32
#define MLP_HEAD 64

struct mlp_shape {
    uint32_t n_features, n_hidden, n_embed, n_head;
    uint32_t n_totals; /* inputs of the head beside the sum; 0 as published */
};

#define MLP_LAYERS 4
/* Also holds a gradient. One block; the layers point into it. */
struct mlp {
    struct mlp_shape shape;
    size_t n_params;
    float *params; /* in the arena: w1 b1 w2 b2 w3 b3 w4 b4 */
    struct mlp_layer layers[MLP_LAYERS];
};

/* All zero. */
void mlp_init(struct mlp *mlp, const struct mlp_shape *shape,
              struct arena *arena);
/* Weights and biases uniform in +-1/sqrt(inputs), as PyTorch does. */
void mlp_randomise(struct mlp *mlp, struct rng *rng);

/* Samples and their tables, sample behind sample. */
struct mlp_batch {
    size_t n_samples, n_rows; /* >= 1 */
    float *x;                 /* [n_rows][n_features], standardised */
    uint32_t *first;          /* [n_samples + 1] into x */
    float *weight;            /* [n_rows] in the sum */
    float *totals;            /* [n_samples][n_totals] */
};

/* Activations and their gradients, sized for the largest batch. */
struct mlp_work {
    size_t max_rows, max_samples;
    /* Of each layer, h1, h2, h3 and y: [max_rows or, of the last two,
     * max_samples][n_out]; d_ is the loss's derivative. */
    float *out[MLP_LAYERS], *d_out[MLP_LAYERS];
    float *s, *d_s; /* [max_samples][n_embed + n_totals] */
};
void mlp_work_init(struct mlp_work *work, const struct mlp *mlp,
                   size_t max_rows, size_t max_samples, struct arena *arena);

/* y becomes work->out[3]; keeps what mlp_backward needs. */
void mlp_forward(const struct mlp *mlp, const struct mlp_batch *batch,
                 struct mlp_work *work);
/* work->d_out[3] is given; grad is overwritten. Follows an mlp_forward of the
 * same batch. */
void mlp_backward(const struct mlp *mlp, const struct mlp_batch *batch,
                  struct mlp_work *work, struct mlp *grad);

/* Adam (Kingma and Ba, ICLR 2015) with its usual constants: beta 0.9 and
 * 0.999, epsilon 1e-8, bias corrected; weight decay apart from the gradient
 * (Loshchilov and Hutter, ICLR 2019). */
struct adam {
    size_t n;
    float *m, *v; /* [n] moments, in the arena */
    unsigned step;
};
void adam_init(struct adam *adam, size_t n, struct arena *arena);
/* One step on params[n] against grad[n], which first shrink by learning_rate *
 * weight_decay of themselves. */
void adam_update(struct adam *adam, float *params, const float *grad,
                 double learning_rate, double weight_decay);

#endif
