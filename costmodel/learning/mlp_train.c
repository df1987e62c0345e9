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

/* Evaluates layer k of a net for n inputs from in[first] on:
 * out[n][n_out] = in weight' + bias. If the layer has a ReLU, negative values
 * are set to 0. */
static void layer_forward(const struct mlp *mlp, int k, const float *in,
                          size_t first, size_t n, struct mlp_work *work)
{
    const struct mlp_layer *layer = &mlp->layers[k];
    const size_t n_out = layer->n_out;
    const bool relu = layer->relu;
    float *out = work->out[k] + first * n_out;

    if (!n)
        return;
    multiply(false, true, n, n_out, layer->n_in, in + first * layer->n_in,
             layer->weight, out);
    for (size_t i = 0; i < n; i++, out += n_out)
        for (size_t o = 0; o < n_out; o++) {
            const float x = out[o] + layer->bias[o];

            out[o] = layer->exp2 ? power_of(x) : x > 0 || !relu ? x : 0;
        }
}

/* Turns the derivatives by n outputs of layer k, from the first one on, into
 * derivatives before the activation function. Unless d_in is NULL, also
 * computes the derivatives by the layer's inputs. */
static void layer_backward(const struct mlp *mlp, int k, size_t first, size_t n,
                           struct mlp_work *work, float *d_in)
{
    const struct mlp_layer *layer = &mlp->layers[k];
    const size_t n_out = layer->n_out, n_in = layer->n_in;
    const size_t n_relu = layer->relu ? n * n_out : 0;
    const float *out = work->out[k] + first * n_out;
    float *d_out = work->d_out[k] + first * n_out;

    for (size_t i = 0; layer->exp2 && i < n * n_out; i++)
        d_out[i] *= is_limited(out[i]) ? 0 : (float)M_LN2 * out[i];
    for (size_t i = 0; i < n_relu; i++)
        d_out[i] = out[i] > 0 ? d_out[i] : 0;
    if (d_in && n)
        multiply(false, false, n, n_in, n_out, d_out, layer->weight,
                 d_in + first * n_in);
}

/* Computes the gradient of the parameters of layer k, from the layer's n inputs
 * and the derivatives by its outputs. */
static void layer_gradient(const struct mlp *mlp, int k, const float *in,
                           size_t n, const struct mlp_work *work,
                           struct mlp *to)
{
    const struct mlp_layer *layer = &mlp->layers[k], *grad = &to->layers[k];
    const size_t n_out = layer->n_out;
    const float *d_out = work->d_out[k];

    memset(grad->bias, 0, n_out * sizeof(*grad->bias));
    for (size_t i = 0; i < n; i++)
        for (size_t o = 0; o < n_out; o++)
            grad->bias[o] += d_out[i * n_out + o];
    multiply(true, false, n_out, layer->n_in, n, d_out, in, grad->weight);
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

/* Parts of the rows begin at multiples of this number. OpenBLAS's kernels for
 * AVX2 compute 12 rows at once, so the products of the parts have the bits of a
 * product of all rows. */
#define ROWS_AT_ONCE 12

/* Returns the first row of a part. */
static size_t part_row(const struct mlp_batch *batch, unsigned part)
{
    const size_t row = batch->n_rows * part / MLP_PARTS;

    return part < MLP_PARTS ? row - row % ROWS_AT_ONCE : batch->n_rows;
}

void mlp_forward_part(const struct mlp *mlp, const struct mlp_batch *batch,
                      unsigned part, struct mlp_work *work)
{
    const size_t first = part_row(batch, part);
    const size_t n = part_row(batch, part + 1) - first;

    assert(batch->n_rows <= work->max_rows);
    layer_forward(mlp, 0, batch->x, first, n, work);
    layer_forward(mlp, 1, work->out[0], first, n, work);
}

void mlp_forward_head(const struct mlp *mlp, const struct mlp_batch *batch,
                      struct mlp_work *work)
{
    const struct mlp_shape *shape = &mlp->shape;
    const size_t n = batch->n_samples;

    assert(batch->totals || !shape->n_totals);
    assert(n <= work->max_samples);
    sum_embeddings(batch, work, shape->n_embed, shape->n_totals);
    if (shape->is_monotone)
        take_logs(mlp, n, work->s);
    layer_forward(mlp, 2, work->s, 0, n, work);
    layer_forward(mlp, 3, work->out[2], 0, n, work);
}

void mlp_forward(const struct mlp *mlp, const struct mlp_batch *batch,
                 struct mlp_work *work)
{
    for (unsigned part = 0; part < MLP_PARTS; part++)
        mlp_forward_part(mlp, batch, part, work);
    mlp_forward_head(mlp, batch, work);
}

void mlp_backward_head(const struct mlp *mlp, const struct mlp_batch *batch,
                       struct mlp_work *work)
{
    layer_backward(mlp, 3, 0, batch->n_samples, work, work->d_out[2]);
    layer_backward(mlp, 2, 0, batch->n_samples, work, work->d_s);
    if (mlp->shape.is_monotone)
        undo_logs(mlp, batch->n_samples, work->s, work->d_s);
}

void mlp_backward_part(const struct mlp *mlp, const struct mlp_batch *batch,
                       unsigned part, struct mlp_work *work)
{
    const size_t n_embed = mlp->shape.n_embed, n_in = mlp->layers[2].n_in;
    const size_t first = part_row(batch, part);
    const size_t end = part_row(batch, part + 1);

    memset(work->d_out[1] + first * n_embed, 0,
           (end - first) * n_embed * sizeof(float));
    for (size_t i = 0; i < batch->n_samples; i++)
        for (size_t j = max_u64(batch->first[i], first);
             j < min_u64(batch->first[i + 1], end); j++)
            add_row(work->d_out[1] + j * n_embed, batch->weight[j],
                    work->d_s + i * n_in, n_embed);
    layer_backward(mlp, 1, first, end - first, work, work->d_out[0]);
    layer_backward(mlp, 0, first, end - first, work, NULL);
}

/* The first layer has about as much work as all others together, so it is one
 * part. Returns the first layer of a part. */
static int part_layer(unsigned part)
{
    return part < MLP_PARTS ? (int)part : MLP_LAYERS;
}

void mlp_gradient_part(const struct mlp *mlp, const struct mlp_batch *batch,
                       unsigned part, const struct mlp_work *work,
                       struct mlp *grad)
{
    const float *const in[MLP_LAYERS] = {batch->x, work->out[0], work->s,
                                         work->out[2]};

    for (int k = part_layer(part); k < part_layer(part + 1); k++)
        layer_gradient(mlp, k, in[k], k < 2 ? batch->n_rows : batch->n_samples,
                       work, grad);
}

void adam_init(struct adam *adam, size_t n, struct arena *arena)
{
    *adam = (struct adam){.n = n};
    adam->m = ARENA_NEW(arena, float, n);
    adam->v = ARENA_NEW(arena, float, n);
}

void adam_begin(struct adam *adam, double learning_rate, double weight_decay)
{
    adam->step++;
    adam->keep = (float)(1 - learning_rate * weight_decay);
    adam->rate = (float)(learning_rate / (1 - pow(BETA_1, adam->step)));
    adam->root = (float)(1 / sqrt(1 - pow(BETA_2, adam->step)));
}

void adam_update(struct adam *adam, float *params, const float *grad,
                 size_t begin, size_t end)
{
    const float b1 = (float)BETA_1, b2 = (float)BETA_2;
    const float c1 = (float)(1 - BETA_1), c2 = (float)(1 - BETA_2);
    const float keep = adam->keep, rate = adam->rate, root = adam->root;
    float *m = adam->m, *v = adam->v;

    for (size_t i = begin; i < end; i++) {
        m[i] = b1 * m[i] + c1 * grad[i];
        v[i] = b2 * v[i] + c2 * grad[i] * grad[i];
        params[i] =
            keep * params[i] - rate * m[i] / (sqrtf(v[i]) * root + EPSILON);
    }
}

void mlp_update_part(struct mlp *mlp, const struct mlp *grad, unsigned part,
                     struct adam *adam)
{
    const int last = part_layer(part + 1);
    const size_t begin =
        (size_t)(mlp->layers[part_layer(part)].weight - mlp->params);

    adam_update(adam, mlp->params, grad->params, begin,
                last < MLP_LAYERS
                    ? (size_t)(mlp->layers[last].weight - mlp->params)
                    : mlp->n_params);
}
