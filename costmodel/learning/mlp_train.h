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

/*
 * A training step, some of whose work is in parts that several threads may
 * compute at the same time. All parts of a line must be done before the next
 * line begins:
 *
 *     mlp_forward_part                      parts of the rows
 *     mlp_forward_head, mlp_backward_head
 *     mlp_backward_part                     parts of the rows
 *     mlp_gradient_part, mlp_update_part    parts of the layers
 *
 * The parts do not depend on the number of threads, so the results do not
 * either.
 */
#define MLP_PARTS 2u
/* Computes the embeddings of a part of the rows. */
void mlp_forward_part(const struct mlp *mlp, const struct mlp_batch *batch,
                      unsigned part, struct mlp_work *work);
/* Computes the net's output y and stores it in work->out[3]. */
void mlp_forward_head(const struct mlp *mlp, const struct mlp_batch *batch,
                      struct mlp_work *work);
/* These two functions compute the derivatives of the loss by the outputs of the
 * layers, before the activation functions. The derivatives by y must be in
 * work->d_out[3]. */
void mlp_backward_head(const struct mlp *mlp, const struct mlp_batch *batch,
                       struct mlp_work *work);
void mlp_backward_part(const struct mlp *mlp, const struct mlp_batch *batch,
                       unsigned part, struct mlp_work *work);
/* Stores the gradient of a part of the layers in `grad`. */
void mlp_gradient_part(const struct mlp *mlp, const struct mlp_batch *batch,
                       unsigned part, const struct mlp_work *work,
                       struct mlp *grad);

/* Computes the net's output y with all steps of the forward. */
void mlp_forward(const struct mlp *mlp, const struct mlp_batch *batch,
                 struct mlp_work *work);

/* Adam (Kingma and Ba, ICLR 2015) with its usual constants: beta 0.9 and 0.999,
 * epsilon 1e-8, bias corrected. Weight decay is decoupled from the gradient
 * (Loshchilov and Hutter, ICLR 2019). */
struct adam {
    size_t n;
    float *m, *v; /* [n] moments, in the arena */
    unsigned step;
    /* Factors of the current step: the share of a parameter that is kept, the
     * learning rate, and the correction of the root of v. */
    float keep, rate, root;
};
void adam_init(struct adam *adam, size_t n, struct arena *arena);
/* Begins a step. In each step the parameters shrink by the fraction
 * learning_rate * weight_decay first. */
void adam_begin(struct adam *adam, double learning_rate, double weight_decay);
/* Updates the parameters [begin, end) of params[n] against the gradient
 * grad[n]. Several threads may update different parameters at the same time. */
void adam_update(struct adam *adam, float *params, const float *grad,
                 size_t begin, size_t end);
/* Updates the parameters whose gradient mlp_gradient_part has stored. */
void mlp_update_part(struct mlp *mlp, const struct mlp *grad, unsigned part,
                     struct adam *adam);

#endif
