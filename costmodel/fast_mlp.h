/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FAST_MLP_H
#define NEUROSHARD_COSTMODEL_FAST_MLP_H

#include "base/cpu.h"
#include "base/mem.h"

#include <stdbool.h>

/*
 * Small fully connected nets, evaluated fast: what a search spends its time
 * in. Weights are repacked so that SIMD lanes are outputs; four rows share
 * each load of a weight. Nothing is reordered, and every product is added by
 * one fused multiply-add, which IEEE 754 rounds once and alike everywhere; so
 * every instruction set and every batch size gives the same bits:
 *
 *     out[o] = fma(w[1][o], x[1], fma(w[0][o], x[0], bias[o])) ...
 *
 * except for layers of at most FAST_MLP_NARROW outputs, which add 16
 * interleaved partial sums in a fixed tree and the bias last. NaN inputs give
 * NaN outputs (a ReLU passes NaN on).
 */

#define FAST_MLP_MAX_LAYERS 8
#define FAST_MLP_MAX_WIDTH 1024 /* of inputs and of each layer */
#define FAST_MLP_NARROW 4
#define FAST_MLP_TILE 32 /* outputs of one packed tile */
#define FAST_MLP_ROWS 4  /* rows that are evaluated together */

/* A layer as trained. */
struct mlp_layer {
    uint32_t n_in, n_out; /* of one that is evaluated 1 .. FAST_MLP_MAX_WIDTH */
    float *weight;        /* [n_out][n_in] */
    float *bias;          /* [n_out] */
    bool relu;
    const char *name; /* of a published one, or NULL */
};

/* A layer as evaluated. */
struct fast_mlp_packed {
    uint32_t n_in, n_out;
    uint32_t n_in_padded, n_out_padded; /* multiples of FAST_MLP_TILE */
    bool relu;
    bool narrow;
    const float *weight; /* wide: [n_out_padded / TILE][n_in][TILE];
                            narrow: [n_out][n_in_padded] */
    const float *bias;   /* [n_out_padded] */
};

struct fast_mlp {
    uint32_t n_in, n_out;
    uint32_t n_layers;
    struct fast_mlp_packed layers[FAST_MLP_MAX_LAYERS];
    uint32_t n_logs; /* the caller's to set: so many of the last inputs, >= 0,
                        are taken as log2(1 + x), to 1e-6 */
    uint32_t stride; /* widest padded row */
    /* in[n][n_in] -> out[n][n_out]. Thread-safe; best in multiples of
     * FAST_MLP_ROWS rows. Uses 32 KiB of stack. */
    void (*eval)(const struct fast_mlp *mlp, const float *in, size_t n,
                 float *out);
};

/* Copies everything into the arena; mlp may be copied and lives as long. Layer
 * k + 1 takes what layer k gives. isa is cpu_isa_best() or lower. Shapes are
 * the caller's to check (assert). */
void fast_mlp_init(struct fast_mlp *mlp, const struct mlp_layer *layers,
                   uint32_t n_layers, enum cpu_isa isa, struct arena *arena);

/* One sentence where an instruction set has no such instruction, so that nets
 * take a multiple of the time; else NULL. */
const char *fast_mlp_warning(enum cpu_isa isa);

/* The bodies, for fast_mlp_init only. */
void fast_mlp_eval_portable(const struct fast_mlp *mlp, const float *in,
                            size_t n, float *out);
void fast_mlp_eval_avx2(const struct fast_mlp *mlp, const float *in, size_t n,
                        float *out);
void fast_mlp_eval_avx512(const struct fast_mlp *mlp, const float *in, size_t n,
                          float *out);

#endif
