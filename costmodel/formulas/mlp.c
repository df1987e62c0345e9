/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/mlp.h"

void mlp_init(struct mlp *mlp, const struct mlp_shape *shape,
              struct arena *arena)
{
    const uint32_t n_in[] = {shape->n_features, shape->n_hidden,
                             shape->n_embed + shape->n_totals, shape->n_head};
    const uint32_t n_out[] = {shape->n_hidden, shape->n_embed, shape->n_head,
                              1};
    float *next;

    mlp->shape = *shape;
    mlp->n_params = 0;
    for (int k = 0; k < MLP_LAYERS; k++)
        mlp->n_params += (n_in[k] + (size_t)1) * n_out[k];
    mlp->params = next = ARENA_NEW(arena, float, mlp->n_params);
    for (int k = 0; k < MLP_LAYERS; k++) {
        float *bias = next + (size_t)n_out[k] * n_in[k];

        mlp->layers[k] = (struct mlp_layer){n_in[k], n_out[k], next, bias,
                                            .relu = k + 1 < MLP_LAYERS};
        if (shape->is_monotone && (k == 1 || k == 2)) {
            mlp->layers[k].relu = false;
            mlp->layers[k].exp2 = true;
        }
        next = bias + n_out[k];
    }
}

bool mlp_is_monotone(const struct mlp *mlp)
{
    const struct mlp_layer *in = &mlp->layers[2], *out = &mlp->layers[3];

    for (size_t o = 0; o < in->n_out; o++) {
        if (out->weight[o] < 0)
            return false;
        for (size_t i = 0; i + MLP_FREE < in->n_in; i++)
            if (in->weight[o * in->n_in + i] < 0)
                return false;
    }
    return true;
}
