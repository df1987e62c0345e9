/* SPDX-License-Identifier: MIT */
/*
 * The common source of the evaluators for all instruction sets. Each
 * fast_mlp_ISA.c includes this file after it defines LANES (floats of a vector
 * register), FUSED(a, b, c) (for vectors: a b + c, rounded once) and EVAL (name
 * of the function). So instruction sets differ in width only, never in
 * arithmetic. Vectors use the compilers' own extension (gcc, clang:
 * vector_size).
 */

#include "costmodel/formulas/fast_mlp.h"

#include <assert.h>
#include <string.h>

#define ROWS FAST_MLP_ROWS
#define TILE FAST_MLP_TILE
/* Number of vector registers that hold outputs. If fewer rows are evaluated,
 * each row gets more of these registers. */
#define SUMS 8
#define DOT_LANES 16 /* partial sums of a narrow layer */

typedef float vec __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t mask __attribute__((vector_size(4 * LANES), may_alias));
typedef uint32_t word __attribute__((vector_size(4 * LANES), may_alias));

static inline const vec *as_vec(const float *x)
{
    return (const vec *)(const void *)x;
}

/* Returns a vector with x in all lanes. */
static inline vec vec_of(float x)
{
    return x - (vec){0};
}

/* Returns max(x, 0), but passes NaN on. */
static inline vec vec_relu(vec x)
{
    const vec zero = {0};

    return (vec)((mask)x & ~(mask)(x <= zero));
}

/* Returns 2^x by operations that round identically on all machines: x is a
 * whole number n plus a rest of at most 1/2, and 2^rest is a polynomial. x is
 * limited to -FAST_MLP_MOST_EXP2 .. FAST_MLP_MOST_EXP2. NaN stays NaN. */
static inline vec vec_exp2(vec x)
{
    const vec rounds = vec_of(0x1.8p23F);
    const vec low = vec_of(-(float)FAST_MLP_MOST_EXP2);
    const vec high = vec_of((float)FAST_MLP_MOST_EXP2);
    const mask below = (mask)(x < low), above = (mask)(x > high);
    const vec y = (vec)(((mask)x & ~below & ~above) | ((mask)low & below) |
                        ((mask)high & above));
    /* The sum with 1.5 2^23 has no place for digits after the point. */
    const vec n = (y + rounds) - rounds, rest = y - n;
    vec series = rest * 1.54035304e-4F + 1.33335581e-3F;

    series = rest * series + 9.61812911e-3F;
    series = rest * series + 5.55041087e-2F;
    series = rest * series + 2.40226507e-1F;
    series = rest * series + 6.93147181e-1F;
    series = rest * series + 1;
    return (vec)((mask)series + (__builtin_convertvector(n, mask) << 23)) +
           (x - x);
}

/* Evaluates the outputs [begin, end) of some rows, `vecs` registers at a time.
 * in and out are [rows][stride]. */
static inline __attribute__((always_inline)) void
outputs_wide(const struct fast_mlp_packed *layer, const float *in, float *out,
             size_t stride, size_t begin, size_t end, size_t rows, size_t vecs)
{
    const size_t tile = (size_t)TILE * layer->n_in;

    for (size_t o = begin; o < end; o += vecs * LANES) {
        const float *w = layer->weight + o / TILE * tile + o % TILE;
        vec acc[ROWS][SUMS];

        for (size_t r = 0; r < rows; r++)
            for (size_t v = 0; v < vecs; v++)
                acc[r][v] = as_vec(layer->bias + o)[v];
        for (size_t i = 0; i < layer->n_in; i++, w += TILE)
            for (size_t r = 0; r < rows; r++)
                for (size_t v = 0; v < vecs; v++)
                    acc[r][v] = FUSED(
                        *as_vec(w + v * LANES / TILE * tile + v * LANES % TILE),
                        vec_of(in[r * stride + i]), acc[r][v]);
        for (size_t r = 0; r < rows; r++) {
            vec *row = (vec *)(void *)(out + r * stride + o);

            for (size_t v = 0; v < vecs; v++)
                row[v] = layer->relu   ? vec_relu(acc[r][v])
                         : layer->exp2 ? vec_exp2(acc[r][v])
                                       : acc[r][v];
        }
    }
}

/* Evaluates all outputs of some rows, SUMS registers at a time. The last
 * outputs are evaluated two registers at a time, which always works because two
 * registers divide a tile. */
static inline __attribute__((always_inline)) void
rows_wide(const struct fast_mlp_packed *layer, const float *in, float *out,
          size_t stride, size_t rows)
{
    const size_t n = layer->n_out_padded, vecs = SUMS / rows;
    const size_t most = vecs > 2 ? n / (vecs * LANES) * (vecs * LANES) : 0;

    if (vecs > 2)
        outputs_wide(layer, in, out, stride, 0, most, rows, vecs);
    outputs_wide(layer, in, out, stride, most, n, rows, 2);
}

static void layer_wide(const struct fast_mlp_packed *layer, const float *in,
                       float *out, size_t stride, size_t n_rows)
{
    switch (n_rows) {
    case 1:
        rows_wide(layer, in, out, stride, 1);
        break;
    case 2:
        rows_wide(layer, in, out, stride, 2);
        break;
    default: /* three rows would take longer than four */
        rows_wide(layer, in, out, stride, ROWS);
    }
}

/* Returns the dot product of w[n] and x[n]. The two halves of the partial sums
 * are added as vectors. */
static float dot(const float *w, const float *x, size_t n)
{
    typedef float half __attribute__((vector_size(2 * DOT_LANES)));
    typedef float quarter __attribute__((vector_size(DOT_LANES)));
    vec part[DOT_LANES / LANES] = {{0}};
    half halves[2];
    quarter quarters[2], sums;

    for (size_t i = 0; i < n; i += DOT_LANES)
        for (size_t v = 0; v < DOT_LANES / LANES; v++)
            part[v] = FUSED(as_vec(w + i)[v], as_vec(x + i)[v], part[v]);
    memcpy(halves, part, sizeof(halves));
    halves[0] += halves[1];
    memcpy(quarters, halves, sizeof(quarters));
    sums = quarters[0] + quarters[1];
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

static void layer_narrow(const struct fast_mlp_packed *layer, const float *in,
                         float *out, size_t stride, size_t n_rows)
{
    const size_t n = layer->n_in_padded;

    for (size_t r = 0; r < n_rows; r++) {
        float *row = out + r * stride;

        memset(row, 0, TILE * sizeof(*row));
        for (size_t o = 0; o < layer->n_out; o++) {
            float y = dot(layer->weight + o * n, in + r * stride, n);

            y += layer->bias[o];
            row[o] = layer->relu && y <= 0 ? 0 : y;
        }
    }
}

/* Returns log2(1 + x) for x >= 0, by operations that round identically on all
 * machines: 1 + x = 2^e m with m around 1, and log2(m) by the series of atanh.
 * NaN stays NaN. */
static inline vec vec_log2_1p(vec x)
{
    const vec y = x + 1;
    /* 0x3f3504f3 is sqrt(1/2), where the range of m begins. */
    const word exponent = ((word)y - 0x3f3504f3) >> 23;
    const vec m = (vec)((word)y - (exponent << 23));
    const vec z = (m - 1) / (m + 1), zz = z * z;
    vec series = zz * 0.320598898F + 0.412198583F;

    series = zz * series + 0.577078016F;
    series = zz * series + 0.961796694F;
    series = zz * series + 2.885390082F;
    return __builtin_convertvector((mask)exponent, vec) + z * series + (y - y);
}

/* Replaces each value x in x[begin .. end) by log2(1 + x). Values before
 * `begin` stay, and zeros after `end` stay zeros. x is padded to whole
 * registers. */
static inline void take_logs(float *x, size_t begin, size_t end)
{
    word lane = {0};

    for (uint32_t l = 0; l < LANES; l++)
        lane[l] = l;
    for (size_t i = begin / LANES * LANES; i < end; i += LANES) {
        const uint32_t n_kept = i < begin ? (uint32_t)(begin - i) : 0;
        const mask keep = (mask)(lane < n_kept);
        mask *pos = (mask *)(void *)(x + i);

        *pos = (*pos & keep) | ((mask)vec_log2_1p((vec)*pos) & ~keep);
    }
}

/* Copies up to ROWS rows of input, padded with zeros. If there are three rows,
 * a fourth row of zeros is added. */
static void load_rows(const struct fast_mlp *mlp, const float *in,
                      size_t n_rows, float *out)
{
    const size_t n_in = mlp->n_in, n_padded = mlp->layers[0].n_in_padded;

    if (n_rows == 3)
        memset(out + 3 * mlp->stride, 0, n_padded * sizeof(*out));
    for (size_t r = 0; r < n_rows; r++, out += mlp->stride) {
        memset(out, 0, n_padded * sizeof(*out));
        memcpy(out, in + r * n_in, n_in * sizeof(*out));
        if (mlp->n_logs)
            take_logs(out, n_in - mlp->n_logs, n_in);
    }
}

void EVAL(const struct fast_mlp *mlp, const float *in, size_t n, float *out)
{
    _Alignas(64) float buffers[2][ROWS * FAST_MLP_MAX_WIDTH];
    const size_t stride = mlp->stride;

    assert(stride <= FAST_MLP_MAX_WIDTH);
    for (size_t begin = 0; begin < n; begin += ROWS) {
        const size_t n_rows = n - begin < ROWS ? n - begin : ROWS;
        float *x = buffers[0], *y = buffers[1];

        load_rows(mlp, in + begin * mlp->n_in, n_rows, x);
        for (uint32_t k = 0; k < mlp->n_layers; k++) {
            float *swap = x;

            if (mlp->layers[k].narrow)
                layer_narrow(&mlp->layers[k], x, y, stride, n_rows);
            else
                layer_wide(&mlp->layers[k], x, y, stride, n_rows);
            x = y;
            y = swap;
        }
        for (size_t r = 0; r < n_rows; r++)
            memcpy(out + (begin + r) * mlp->n_out, x + r * stride,
                   mlp->n_out * sizeof(*out));
    }
}
