/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_MLP_TRAIN_H
#define NEUROSHARD_COSTMODEL_LEARNING_MLP_TRAIN_H

#include "base/rng.h"
#include "costmodel/formulas/mlp.h"

/*
 * Training of a net: its random start, its output and its gradient for a batch,
 * and the optimizer. The functions use device/gemm.h: call
 * gemm_init first.
 */

/* Draws weights and biases uniformly from +-1/sqrt(inputs), as PyTorch does. */
void mlp_randomise(struct mlp *mlp, struct rng *rng);

/* Sets each weight in the head of a monotone net that has the wrong sign to 0.
 * Hidden units with an even number are convex, the others are concave. */
void mlp_make_monotone(struct mlp *mlp);

/* A batch: samples and their tables, sorted by sample. */
struct mlp_batch {
    size_t n_samples, n_rows; /* numbers of samples and of tables, >= 1 */
    float *x;                 /* [n_rows][n_features], standardised */
    uint32_t *first;          /* [n_samples + 1]: first row of a sample */
    float *weight;            /* [n_rows]: weight in the sum */
    float *totals;            /* [n_samples][n_totals] */
};

/* Activations and their gradients, sized for the largest batch. */
struct mlp_work {
    size_t max_rows, max_samples;
    /* Outputs of the four layers, h1, h2, h3 and y. h1 and h2 are
     * [max_rows][n_out], h3 and y are [max_samples][n_out]. d_out is the
     * derivative of the loss by these outputs. */
    float *out[MLP_LAYERS], *d_out[MLP_LAYERS];
    /* [max_samples][n_embed + n_totals]: inputs of the head, and their
     * gradient. */
    float *s, *d_s;
};
void mlp_work_init(struct mlp_work *work, const struct mlp *mlp,
                   size_t max_rows, size_t max_samples, struct arena *arena);

/* Computes the net's output y and stores it in work->out[3]. Keeps all values
 * that mlp_backward needs. */
void mlp_forward(const struct mlp *mlp, const struct mlp_batch *batch,
                 struct mlp_work *work);
/* Computes the gradient of all parameters from work->d_out[3], and stores it in
 * `grad`. mlp_forward must have been called for the same batch. */
void mlp_backward(const struct mlp *mlp, const struct mlp_batch *batch,
                  struct mlp_work *work, struct mlp *grad);

/* Adam (Kingma and Ba, ICLR 2015) with its usual constants: beta 0.9 and 0.999,
 * epsilon 1e-8, bias corrected. Weight decay is decoupled from the gradient
 * (Loshchilov and Hutter, ICLR 2019). */
struct adam {
    size_t n;
    float *m, *v; /* [n] moments, in the arena */
    unsigned step;
};
void adam_init(struct adam *adam, size_t n, struct arena *arena);
/* Updates params[n] by one step against the gradient grad[n]. Before the step,
 * the parameters shrink by the fraction learning_rate * weight_decay. */
void adam_update(struct adam *adam, float *params, const float *grad,
                 double learning_rate, double weight_decay);

#endif
