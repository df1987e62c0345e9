/* SPDX-License-Identifier: MIT */
#include "costmodel/mlp.h"

#include "costmodel/gemm.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define BETA_1 0.9
#define BETA_2 0.999
#define EPSILON 1e-8f

static size_t head_inputs(const struct mlp_shape *shape)
{
    return (size_t)shape->n_embed + shape->n_totals;
}

size_t mlp_n_params(const struct mlp_shape *shape)
{
    const size_t n_features = shape->n_features, n_hidden = shape->n_hidden;
    const size_t n_embed = shape->n_embed, n_head = shape->n_head;

    return n_hidden * (n_features + 1) + n_embed * (n_hidden + 1) +
           n_head * (head_inputs(shape) + 1) + n_head + 1;
}

static float *take(float **next, size_t n)
{
    float *view = *next;

    *next += n;
    return view;
}

void mlp_init(struct mlp *mlp, const struct mlp_shape *shape,
              struct arena *arena)
{
    float *next;

    mlp->shape = *shape;
    mlp->n_params = mlp_n_params(shape);
    mlp->params = next = ARENA_NEW(arena, float, mlp->n_params);
    mlp->w1 = take(&next, (size_t)shape->n_hidden * shape->n_features);
    mlp->b1 = take(&next, shape->n_hidden);
    mlp->w2 = take(&next, (size_t)shape->n_embed * shape->n_hidden);
    mlp->b2 = take(&next, shape->n_embed);
    mlp->w3 = take(&next, shape->n_head * head_inputs(shape));
    mlp->b3 = take(&next, shape->n_head);
    mlp->w4 = take(&next, shape->n_head);
    mlp->b4 = take(&next, 1);
    assert(next == mlp->params + mlp->n_params);
}

static void randomise_layer(struct rng *rng, float *weight, float *bias,
                            size_t n_out, size_t n_in)
{
    const double reach = 1 / sqrt((double)n_in);

    for (size_t i = 0; i < n_out * n_in; i++)
        weight[i] = (float)(reach * (2 * rng_uniform(rng) - 1));
    for (size_t i = 0; i < n_out; i++)
        bias[i] = (float)(reach * (2 * rng_uniform(rng) - 1));
}

void mlp_randomise(struct mlp *mlp, struct rng *rng)
{
    const struct mlp_shape *shape = &mlp->shape;

    randomise_layer(rng, mlp->w1, mlp->b1, shape->n_hidden, shape->n_features);
    randomise_layer(rng, mlp->w2, mlp->b2, shape->n_embed, shape->n_hidden);
    randomise_layer(rng, mlp->w3, mlp->b3, shape->n_head, head_inputs(shape));
    randomise_layer(rng, mlp->w4, mlp->b4, 1, shape->n_head);
}

void mlp_work_init(struct mlp_work *work, const struct mlp_shape *shape,
                   size_t max_rows, size_t max_samples, struct arena *arena)
{
    work->max_rows = max_rows;
    work->max_samples = max_samples;
    work->h1 = ARENA_NEW(arena, float, max_rows * shape->n_hidden);
    work->d_h1 = ARENA_NEW(arena, float, max_rows * shape->n_hidden);
    work->h2 = ARENA_NEW(arena, float, max_rows * shape->n_embed);
    work->d_h2 = ARENA_NEW(arena, float, max_rows * shape->n_embed);
    work->s = ARENA_NEW(arena, float, max_samples *head_inputs(shape));
    work->d_s = ARENA_NEW(arena, float, max_samples *head_inputs(shape));
    work->h3 = ARENA_NEW(arena, float, max_samples * shape->n_head);
    work->d_h3 = ARENA_NEW(arena, float, max_samples * shape->n_head);
}

/* out[n][n_out] = relu(in weight' + bias) */
static void layer_forward(float *out, const float *in, const float *weight,
                          const float *bias, size_t n, size_t n_out,
                          size_t n_in)
{
    gemm(false, true, n, n_out, n_in, in, weight, 0, out);
    for (size_t i = 0; i < n; i++) {
        float *row = out + i * n_out;

        for (size_t o = 0; o < n_out; o++) {
            float x = row[o] + bias[o];

            row[o] = x > 0 ? x : 0;
        }
    }
}

/* d_out becomes the derivative before the ReLU, and its column sums that of
 * the bias. */
static void relu_backward(float *d_out, const float *out, float *d_bias,
                          size_t n, size_t n_out)
{
    memset(d_bias, 0, n_out * sizeof(*d_bias));
    for (size_t i = 0; i < n; i++) {
        const float *y = out + i * n_out;
        float *d = d_out + i * n_out;

        for (size_t o = 0; o < n_out; o++) {
            d[o] = y[o] > 0 ? d[o] : 0;
            d_bias[o] += d[o];
        }
    }
}

static void add_row(float *sum, float weight, const float *more, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += weight * more[i];
}

/* What the head sees: the sums of the embeddings, then the totals. */
static void sum_embeddings(const struct mlp_batch *batch, struct mlp_work *work,
                           size_t n_embed, size_t n_totals)
{
    const size_t n_in = n_embed + n_totals;

    memset(work->s, 0, batch->n_samples * n_in * sizeof(*work->s));
    for (size_t i = 0; i < batch->n_samples; i++) {
        float *s = work->s + i * n_in;

        for (size_t j = batch->first[i]; j < batch->first[i + 1]; j++)
            add_row(s, batch->weight ? batch->weight[j] : 1,
                    work->h2 + batch->row[j] * n_embed, n_embed);
        if (n_totals)
            memcpy(s + n_embed, batch->totals + i * n_totals,
                   n_totals * sizeof(*s));
    }
}

void mlp_forward(const struct mlp *mlp, const struct mlp_batch *batch,
                 struct mlp_work *work, float *y)
{
    const struct mlp_shape *shape = &mlp->shape;
    const size_t n_embed = shape->n_embed, n = batch->n_samples;

    assert(batch->totals || !shape->n_totals);
    assert(batch->n_rows <= work->max_rows && n <= work->max_samples);
    layer_forward(work->h1, batch->x, mlp->w1, mlp->b1, batch->n_rows,
                  shape->n_hidden, shape->n_features);
    layer_forward(work->h2, work->h1, mlp->w2, mlp->b2, batch->n_rows, n_embed,
                  shape->n_hidden);
    sum_embeddings(batch, work, n_embed, shape->n_totals);
    layer_forward(work->h3, work->s, mlp->w3, mlp->b3, n, shape->n_head,
                  head_inputs(shape));
    gemm(false, true, n, 1, shape->n_head, work->h3, mlp->w4, 0, y);
    for (size_t i = 0; i < n; i++)
        y[i] += mlp->b4[0];
}

void mlp_backward(const struct mlp *mlp, const struct mlp_batch *batch,
                  struct mlp_work *work, const float *d_y, struct mlp *grad)
{
    const struct mlp_shape *shape = &mlp->shape;
    const size_t n_embed = shape->n_embed, n_hidden = shape->n_hidden;
    const size_t n_head = shape->n_head, n = batch->n_samples;
    const size_t n_in = head_inputs(shape);

    grad->b4[0] = 0;
    for (size_t i = 0; i < n; i++)
        grad->b4[0] += d_y[i];
    gemm(true, false, 1, n_head, n, d_y, work->h3, 0, grad->w4);
    gemm(false, false, n, n_head, 1, d_y, mlp->w4, 0, work->d_h3);
    relu_backward(work->d_h3, work->h3, grad->b3, n, n_head);
    gemm(true, false, n_head, n_in, n, work->d_h3, work->s, 0, grad->w3);
    gemm(false, false, n, n_in, n_head, work->d_h3, mlp->w3, 0, work->d_s);

    /* A table's row gets the sum over the samples that it is in. */
    memset(work->d_h2, 0, batch->n_rows * n_embed * sizeof(*work->d_h2));
    for (size_t i = 0; i < n; i++)
        for (size_t j = batch->first[i]; j < batch->first[i + 1]; j++)
            add_row(work->d_h2 + batch->row[j] * n_embed,
                    batch->weight ? batch->weight[j] : 1, work->d_s + i * n_in,
                    n_embed);
    relu_backward(work->d_h2, work->h2, grad->b2, batch->n_rows, n_embed);
    gemm(true, false, n_embed, n_hidden, batch->n_rows, work->d_h2, work->h1, 0,
         grad->w2);
    gemm(false, false, batch->n_rows, n_hidden, n_embed, work->d_h2, mlp->w2, 0,
         work->d_h1);
    relu_backward(work->d_h1, work->h1, grad->b1, batch->n_rows, n_hidden);
    gemm(true, false, n_hidden, shape->n_features, batch->n_rows, work->d_h1,
         batch->x, 0, grad->w1);
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
