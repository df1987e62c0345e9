/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/mlp_train.h"

#include "device/gemm.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define BETA_1 0.9
#define BETA_2 0.999
#define EPSILON 1e-8f

void mlp_randomise(struct mlp *mlp, struct rng *rng)
{
    for (int k = 0; k < MLP_LAYERS; k++) {
        const struct mlp_layer *layer = &mlp->layers[k];
        const double reach = 1 / sqrt((double)layer->n_in);

        /* In memory the biases of a layer follow its weights. */
        for (size_t i = 0; i < (size_t)layer->n_out * (layer->n_in + 1); i++)
            layer->weight[i] = (float)(reach * (2 * rng_uniform(rng) - 1));
    }
}

void mlp_work_init(struct mlp_work *work, const struct mlp *mlp,
                   size_t max_rows, size_t max_samples, struct arena *arena)
{
    const struct mlp_layer *layers = mlp->layers;

    work->max_rows = max_rows;
    work->max_samples = max_samples;
    for (int k = 0; k < MLP_LAYERS; k++) {
        const size_t n = layers[k].n_out * (k < 2 ? max_rows : max_samples);

        work->out[k] = ARENA_NEW(arena, float, n);
        work->d_out[k] = ARENA_NEW(arena, float, n);
    }
    work->s = ARENA_NEW(arena, float, max_samples *layers[2].n_in);
    work->d_s = ARENA_NEW(arena, float, max_samples *layers[2].n_in);
}

/* Returns 2^x, with x limited as in an evaluation. */
static float power_of(float x)
{
    return exp2f(fminf(fmaxf(x, -FAST_MLP_MOST_EXP2), FAST_MLP_MOST_EXP2));
}

static bool is_limited(float power)
{
    return power <= 1.0F / (1 << FAST_MLP_MOST_EXP2) ||
           power >= (float)(1 << FAST_MLP_MOST_EXP2);
}

/* Computes c[m][n] = op(a)[m][k] * op(b)[k][n] (device/gemm.h). */
static void multiply(bool transpose_a, bool transpose_b, size_t m, size_t n,
                     size_t k, const float *a, const float *b, float *c)
{
    const struct gemm gemm = {.transpose_a = transpose_a,
                              .transpose_b = transpose_b,
                              .m = (uint32_t)m,
                              .n = (uint32_t)n,
                              .k = (uint32_t)k,
                              .n_batch = 1};

    gemm_host(&gemm, a, b, c);
}

/* Evaluates layer k of a net: out[n][n_out] = in weight' + bias. If the layer
 * has a ReLU, negative values are set to 0. */
static void layer_forward(const struct mlp *mlp, int k, const float *in,
                          size_t n, struct mlp_work *work)
{
    const struct mlp_layer *layer = &mlp->layers[k];
    const size_t n_out = layer->n_out;
    const bool relu = layer->relu;
    float *out = work->out[k];

    multiply(false, true, n, n_out, layer->n_in, in, layer->weight, out);
    for (size_t i = 0; i < n; i++, out += n_out)
        for (size_t o = 0; o < n_out; o++) {
            const float x = out[o] + layer->bias[o];

            out[o] = layer->exp2 ? power_of(x) : x > 0 || !relu ? x : 0;
        }
}

/* Computes the gradient of a layer's parameters. Unless d_in is NULL, also
 * computes the gradient of the layer's inputs. d_out[n][n_out] becomes the
 * derivative before the ReLU. */
static void layer_backward(const struct mlp *mlp, int k, const float *in,
                           size_t n, struct mlp_work *work, struct mlp *to,
                           float *d_in)
{
    const struct mlp_layer *layer = &mlp->layers[k], *grad = &to->layers[k];
    const size_t n_out = layer->n_out, n_in = layer->n_in;
    const size_t n_relu = layer->relu ? n * n_out : 0;
    const float *out = work->out[k];
    float *d_out = work->d_out[k];

    for (size_t i = 0; layer->exp2 && i < n * n_out; i++)
        d_out[i] *= is_limited(out[i]) ? 0 : (float)M_LN2 * out[i];
    for (size_t i = 0; i < n_relu; i++)
        d_out[i] = out[i] > 0 ? d_out[i] : 0;
    memset(grad->bias, 0, n_out * sizeof(*grad->bias));
    for (size_t i = 0; i < n; i++)
        for (size_t o = 0; o < n_out; o++)
            grad->bias[o] += d_out[i * n_out + o];
    multiply(true, false, n_out, n_in, n, d_out, in, grad->weight);
    if (d_in)
        multiply(false, false, n, n_in, n_out, d_out, layer->weight, d_in);
}

static void add_row(float *sum, float weight, const float *more, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += weight * more[i];
}

/* Fills the inputs of the head of the net: the sums of the embeddings, then the
 * totals. */
static void sum_embeddings(const struct mlp_batch *batch, struct mlp_work *work,
                           size_t n_embed, size_t n_totals)
{
    const size_t n_in = n_embed + n_totals;

    memset(work->s, 0, batch->n_samples * n_in * sizeof(*work->s));
    for (size_t i = 0; i < batch->n_samples; i++) {
        float *s = work->s + i * n_in;

        for (size_t j = batch->first[i]; j < batch->first[i + 1]; j++)
            add_row(s, batch->weight[j], work->out[1] + j * n_embed, n_embed);
        if (n_totals)
            memcpy(s + n_embed, batch->totals + i * n_totals,
                   n_totals * sizeof(*s));
    }
}

/* Replaces the sums of embeddings of a monotone net by their logarithms. */
static void take_logs(const struct mlp *mlp, size_t n, float *s)
{
    for (size_t i = 0; i < n; i++, s += mlp->layers[2].n_in)
        for (size_t k = 0; k < mlp->shape.n_embed; k++)
            s[k] = (log2f(1 + s[k]) - MLP_LOG_MEAN) / MLP_LOG_STD;
}

/* Multiplies the gradient of the logarithms by the derivative of the
 * logarithms, given the logarithms s. */
static void undo_logs(const struct mlp *mlp, size_t n, const float *s,
                      float *d_s)
{
    const size_t n_in = mlp->layers[2].n_in;

    for (size_t i = 0; i < n; i++, s += n_in, d_s += n_in)
        for (size_t k = 0; k < mlp->shape.n_embed; k++)
            d_s[k] /= (float)(M_LN2 * MLP_LOG_STD) *
                      exp2f(s[k] * MLP_LOG_STD + MLP_LOG_MEAN);
}

void mlp_make_monotone(struct mlp *mlp)
{
    const struct mlp_layer *in = &mlp->layers[2], *out = &mlp->layers[3];

    for (size_t o = 0; o < in->n_out; o++) {
        float *w = in->weight + o * in->n_in;

        for (size_t i = 0; i < in->n_in - MLP_FREE; i++)
            w[i] = fabsf(w[i]);
        out->weight[o] = fabsf(out->weight[o]);
    }
}

void mlp_forward(const struct mlp *mlp, const struct mlp_batch *batch,
                 struct mlp_work *work)
{
    const struct mlp_shape *shape = &mlp->shape;
    const size_t n_rows = batch->n_rows, n = batch->n_samples;

    assert(batch->totals || !shape->n_totals);
    assert(n_rows <= work->max_rows && n <= work->max_samples);
    layer_forward(mlp, 0, batch->x, n_rows, work);
    layer_forward(mlp, 1, work->out[0], n_rows, work);
    sum_embeddings(batch, work, shape->n_embed, shape->n_totals);
    if (shape->is_monotone)
        take_logs(mlp, n, work->s);
    layer_forward(mlp, 2, work->s, n, work);
    layer_forward(mlp, 3, work->out[2], n, work);
}

void mlp_backward(const struct mlp *mlp, const struct mlp_batch *batch,
                  struct mlp_work *work, struct mlp *grad)
{
    const size_t n_embed = mlp->shape.n_embed, n_in = mlp->layers[2].n_in;
    const size_t n_rows = batch->n_rows, n = batch->n_samples;

    layer_backward(mlp, 3, work->out[2], n, work, grad, work->d_out[2]);
    layer_backward(mlp, 2, work->s, n, work, grad, work->d_s);
    if (mlp->shape.is_monotone)
        undo_logs(mlp, n, work->s, work->d_s);
    memset(work->d_out[1], 0, n_rows * n_embed * sizeof(float));
    for (size_t i = 0; i < n; i++)
        for (size_t j = batch->first[i]; j < batch->first[i + 1]; j++)
            add_row(work->d_out[1] + j * n_embed, batch->weight[j],
                    work->d_s + i * n_in, n_embed);
    layer_backward(mlp, 1, work->out[0], n_rows, work, grad, work->d_out[0]);
    layer_backward(mlp, 0, batch->x, n_rows, work, grad, NULL);
}

void adam_init(struct adam *adam, size_t n, struct arena *arena)
{
    adam->n = n;
    adam->m = ARENA_NEW(arena, float, n);
    adam->v = ARENA_NEW(arena, float, n);
    adam->step = 0;
}

void adam_update(struct adam *adam, float *params, const float *grad,
                 double learning_rate, double weight_decay)
{
    const float keep = (float)(1 - learning_rate * weight_decay);
    const float b1 = (float)BETA_1, b2 = (float)BETA_2;
    const float c1 = (float)(1 - BETA_1), c2 = (float)(1 - BETA_2);
    float *m = adam->m, *v = adam->v;
    float rate, root;

    adam->step++;
    rate = (float)(learning_rate / (1 - pow(BETA_1, adam->step)));
    root = (float)(1 / sqrt(1 - pow(BETA_2, adam->step)));
    for (size_t i = 0; i < adam->n; i++) {
        m[i] = b1 * m[i] + c1 * grad[i];
        v[i] = b2 * v[i] + c2 * grad[i] * grad[i];
        params[i] =
            keep * params[i] - rate * m[i] / (sqrtf(v[i]) * root + EPSILON);
    }
}
