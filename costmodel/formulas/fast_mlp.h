/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_FAST_MLP_H
#define NEUROSHARD_COSTMODEL_FORMULAS_FAST_MLP_H

#include "base/cpu.h"
#include "base/mem.h"

#include <stdbool.h>

/*
 * Fast evaluation of small fully connected nets, in which a search spends most
 * of its time. Weights are repacked so that SIMD lanes are outputs; four rows
 * of input share each load of a weight.
 *
 * Every instruction set and every batch size gives the same bits. The order of
 * operations is fixed, and every product is added by one fused multiply-add,
 * which IEEE 754 rounds once, identically on all machines:
 *
 *     out[o] = fma(w[1][o], x[1], fma(w[0][o], x[0], bias[o])) ...
 *
 * Layers of at most FAST_MLP_NARROW outputs use another order: they add 16
 * interleaved partial sums in a fixed tree, and the bias last. NaN inputs give
 * NaN outputs (a ReLU passes NaN on). Powers of 2 have a relative error of
 * 1e-7.
 */

#define FAST_MLP_MAX_LAYERS 8
#define FAST_MLP_MAX_WIDTH 1024 /* most inputs, and most outputs of a layer */
#define FAST_MLP_NARROW 4
#define FAST_MLP_TILE 32 /* outputs of one packed tile */
#define FAST_MLP_ROWS 4  /* rows that are evaluated together */
/* Largest exponent of a power of 2. Sums of a thousand tables stay finite. */
#define FAST_MLP_MOST_EXP2 30

/* A layer in the format of training. */
struct mlp_layer {
    /* Numbers of inputs and outputs, 1 .. FAST_MLP_MAX_WIDTH for evaluation. */
    uint32_t n_in, n_out;
    float *weight; /* [n_out][n_in] */
    float *bias;   /* [n_out] */
    bool relu;     /* negative outputs become 0 */
    /* Outputs x become 2^x, with x limited to +-FAST_MLP_MOST_EXP2. */
    bool exp2;
    const char *name; /* name of a published layer, or NULL */
};

/* A layer in the format of evaluation. */
struct fast_mlp_packed {
    uint32_t n_in, n_out;
    uint32_t n_in_padded, n_out_padded; /* multiples of FAST_MLP_TILE */
    bool relu, exp2;
    bool narrow;
    /* Weights. Wide layer: [n_out_padded / TILE][n_in][TILE]; narrow layer:
     * [n_out][n_in_padded]. */
    const float *weight;
    const float *bias; /* [n_out_padded] */
};

struct fast_mlp {
    uint32_t n_in, n_out;
    uint32_t n_layers;
    struct fast_mlp_packed layers[FAST_MLP_MAX_LAYERS];
    /* Number of inputs that are replaced by logarithms; set by the caller. The
     * last n_logs inputs x >= 0 become log2(1 + x), with an error of 1e-6. */
    uint32_t n_logs;
    uint32_t stride; /* floats of the widest padded row */
    /* Evaluates the net: in[n][n_in] -> out[n][n_out]. Thread-safe. Fastest if
     * n is a multiple of FAST_MLP_ROWS. Uses 32 KiB of stack. */
    void (*eval)(const struct fast_mlp *mlp, const float *in, size_t n,
                 float *out);
};

/* Builds a net of layers, in which layer k + 1 takes the outputs of layer k.
 * Everything is copied into the arena; *mlp may be copied and lives as long as
 * the arena. `isa` must be cpu_isa_best() or lower. The caller must pass valid
 * shapes, which are checked by assertions only. */
void fast_mlp_init(struct fast_mlp *mlp, const struct mlp_layer *layers,
                   uint32_t n_layers, enum cpu_isa isa, struct arena *arena);

/* Returns a one-sentence warning if the instruction set has no fused
 * multiply-add, so that nets take a multiple of the time. Returns NULL
 * otherwise. */
const char *fast_mlp_warning(enum cpu_isa isa);

/* Implementations of the member `eval` for each instruction set. Only
 * fast_mlp_init uses them. */
void fast_mlp_eval_portable(const struct fast_mlp *mlp, const float *in,
                            size_t n, float *out);
void fast_mlp_eval_avx2(const struct fast_mlp *mlp, const float *in, size_t n,
                        float *out);
void fast_mlp_eval_avx512(const struct fast_mlp *mlp, const float *in, size_t n,
                          float *out);

#endif
