/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_MLP_H
#define NEUROSHARD_COSTMODEL_FORMULAS_MLP_H

#include "costmodel/formulas/fast_mlp.h"

/*
 * The published net shape: a table MLP (two layers, ReLU after
 * both), the sum over the tables of a sample, and a head (one hidden ReLU
 * layer, one output). Two additions are possible: the sum may be weighted, and
 * the head may have totals t of the sample as further inputs.
 *
 *     h1 = relu(x w1' + b1)         h2 = relu(h1 w2' + b2)
 *     s  = sum of weight h2         h3 = relu([s t] w3' + b3)
 *     y  = h3 w4' + b4
 *
 * A monotone net never predicts less if an embedding is added or a total
 * grows. Its sums and its output are posynomials, sums of products of powers
 * (Boyd et al., A Tutorial on Geometric Programming, 2007):
 *
 *     h2 = exp2(h1 w2' + b2)        s = log2(1 + sum of weight h2), scaled
 *     h3 = exp2([s t] w3' + b3)     y = h3 w4' + b4
 *
 * So h2 is a product of powers of the features if these are logarithms, and h3
 * is a product of powers of the sums. No weight of w3 and w4 is negative,
 * except those of the last MLP_FREE totals, which are equal for all tables.
 */

/* Layer sizes of the published net, which has 20 features. */
#define MLP_HIDDEN 128
#define MLP_EMBED 32
#define MLP_HEAD 64

struct mlp_shape {
    uint32_t n_features, n_hidden, n_embed, n_head;
    /* Inputs of the head after the sum; 0 in the published net. */
    uint32_t n_totals;
    bool is_monotone;
};

/* Scaling of the sums that the head of a monotone net takes:
 * (log2(1 + s) - MLP_LOG_MEAN) / MLP_LOG_STD. */
#define MLP_LOG_MEAN 8
#define MLP_LOG_STD 4
#define MLP_FREE 2

#define MLP_LAYERS 4
/* A net, or the gradient of one. All parameters are in one block of memory,
 * into which the layers point. */
struct mlp {
    struct mlp_shape shape;
    size_t n_params;
    float *params; /* in the arena: w1 b1 w2 b2 w3 b3 w4 b4 */
    struct mlp_layer layers[MLP_LAYERS];
};

/* Initialises a net with all parameters zero. */
void mlp_init(struct mlp *mlp, const struct mlp_shape *shape,
              struct arena *arena);
/* Returns true if no weight in the head of a monotone net has the wrong
 * sign. */
bool mlp_is_monotone(const struct mlp *mlp);
#endif
