/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/fast_mlp.h"

#include <assert.h>
#include <string.h>

/* FP_FAST_FMAF (C11 7.12) is defined if fmaf is about as fast as a
 * multiplication and an addition. */
#ifdef FP_FAST_FMAF
#    define HAS_FMA true
#else
#    define HAS_FMA false
#endif

static uint32_t padded(uint32_t n)
{
    return (n + FAST_MLP_TILE - 1) / FAST_MLP_TILE * FAST_MLP_TILE;
}

/* Returns the index, in the packed weights, of the weight of input i in output
 * o. */
static size_t packed_at(const struct fast_mlp_packed *packed, size_t o,
                        size_t i)
{
    if (packed->narrow)
        return o * packed->n_in_padded + i;
    return o / FAST_MLP_TILE * FAST_MLP_TILE * packed->n_in +
           i * FAST_MLP_TILE + o % FAST_MLP_TILE;
}

static void pack(struct fast_mlp_packed *packed, const struct mlp_layer *layer,
                 struct arena *arena)
{
    const size_t n_in = layer->n_in, n_out = layer->n_out;
    float *weight, *bias;

    packed->n_in = layer->n_in;
    packed->n_out = layer->n_out;
    packed->n_in_padded = padded(layer->n_in);
    packed->n_out_padded = padded(layer->n_out);
    packed->relu = layer->relu;
    packed->exp2 = layer->exp2;
    packed->narrow = layer->n_out <= FAST_MLP_NARROW;
    bias = ARENA_NEW(arena, float, packed->n_out_padded);
    memcpy(bias, layer->bias, layer->n_out * sizeof(*bias));
    weight = ARENA_NEW(arena, float,
                       packed->narrow ? n_out * packed->n_in_padded
                                      : n_in * packed->n_out_padded);
    for (size_t o = 0; o < n_out; o++)
        for (size_t i = 0; i < n_in; i++)
            weight[packed_at(packed, o, i)] = layer->weight[o * n_in + i];
    packed->weight = weight;
    packed->bias = bias;
}

void fast_mlp_init(struct fast_mlp *mlp, const struct mlp_layer *layers,
                   uint32_t n_layers, enum cpu_isa isa, struct arena *arena)
{
    assert(n_layers > 0 && n_layers <= FAST_MLP_MAX_LAYERS);
    memset(mlp, 0, sizeof(*mlp));
    mlp->n_layers = n_layers;
    mlp->n_in = layers[0].n_in;
    mlp->n_out = layers[n_layers - 1].n_out;
    mlp->stride = padded(mlp->n_in);
    for (uint32_t k = 0; k < n_layers; k++) {
        assert(layers[k].n_in > 0 && layers[k].n_in <= FAST_MLP_MAX_WIDTH);
        assert(layers[k].n_out > 0 && layers[k].n_out <= FAST_MLP_MAX_WIDTH);
        assert(!layers[k].exp2 || layers[k].n_out > FAST_MLP_NARROW);
        assert(k == 0 || layers[k].n_in == layers[k - 1].n_out);
        pack(&mlp->layers[k], &layers[k], arena);
        if (mlp->stride < mlp->layers[k].n_out_padded)
            mlp->stride = mlp->layers[k].n_out_padded;
    }
    mlp->eval = isa == CPU_AVX512 ? fast_mlp_eval_avx512
                : isa == CPU_AVX2 ? fast_mlp_eval_avx2
                                  : fast_mlp_eval_portable;
}

const char *fast_mlp_warning(enum cpu_isa isa)
{
    if (isa != CPU_PORTABLE || HAS_FMA)
        return NULL;
    return "cost models that are nets take some 20 times as long without AVX2, "
           "which this machine lacks or may not use";
}
