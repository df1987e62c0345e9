/* SPDX-License-Identifier: MIT */
/* The training net against plain double precision: outputs, the gradient of
 * every layer against central differences, and the steps of Adam. */
#include "costmodel/formulas/mlp.h"

#include "costmodel/learning/mlp_train.h"
#include "device/gemm.h"
#include "tests/rng_normal.h"
#include "tests/tap.h"

#define MAX_WIDTH 16

static uint32_t first[] = {0, 3, 6, 7};
enum { N_SAMPLES = 3, N_ROWS = 7, N_TOTALS = 3 };
static float weights[] = {0.5F, 1, 2, 0.25F, 0.75F, 1.5F, 0};
static float ones[] = {1, 1, 1, 1, 1, 1, 1};

struct fixture {
    struct arena arena;
    struct mlp mlp;
    struct mlp_batch batch;
    float *x;
    float d_y[N_SAMPLES];
    float totals[N_SAMPLES * N_TOTALS];
};

/* Sets up the published net, or one with a weighted sum and additional
 * totals, which may be monotone. */
static void set_up(struct fixture *f, uint64_t seed, bool has_totals,
                   bool is_monotone)
{
    const struct mlp_shape shape = {
        5, 9, 4, 6, has_totals ? N_TOTALS : 0, is_monotone};
    struct rng rng;

    rng_init(&rng, seed, 0);
    mlp_init(&f->mlp, &shape, &f->arena);
    mlp_randomise(&f->mlp, &rng);
    if (is_monotone)
        mlp_make_monotone(&f->mlp);
    f->x = ARENA_NEW(&f->arena, float, N_ROWS *shape.n_features);
    for (size_t i = 0; i < N_ROWS * shape.n_features; i++)
        f->x[i] = (float)rng_normal(&rng);
    for (size_t i = 0; i < N_SAMPLES; i++)
        f->d_y[i] = (float)rng_normal(&rng);
    for (size_t i = 0; i < N_SAMPLES * N_TOTALS; i++)
        f->totals[i] = (float)rng_normal(&rng);
    f->batch = (struct mlp_batch){
        N_SAMPLES, N_ROWS, f->x, first, has_totals ? weights : ones, f->totals};
}

enum form { LINEAR, RELU, EXP2 };

static void layer(double *out, const double *in, const double *weight,
                  const double *bias, size_t n_out, size_t n_in, enum form form)
{
    for (size_t o = 0; o < n_out; o++) {
        out[o] = bias[o];
        for (size_t i = 0; i < n_in; i++)
            out[o] += weight[o * n_in + i] * in[i];
        if (form == RELU && out[o] < 0)
            out[o] = 0;
        if (form == EXP2)
            out[o] = exp2(out[o]);
    }
}

/* Evaluates the net in double precision; params are in the order of the
 * block. */
static void forward(const struct fixture *f, const double *params, double *y)
{
    const struct mlp_shape *s = &f->mlp.shape;
    const enum form form = s->is_monotone ? EXP2 : RELU;
    const double *w1 = params, *b1 = w1 + s->n_hidden * s->n_features;
    const double *w2 = b1 + s->n_hidden, *b2 = w2 + s->n_embed * s->n_hidden;
    const size_t n_in = s->n_embed + s->n_totals;
    const double *w3 = b2 + s->n_embed, *b3 = w3 + s->n_head * n_in;
    const double *w4 = b3 + s->n_head, *b4 = w4 + s->n_head;

    for (size_t i = 0; i < N_SAMPLES; i++) {
        double sum[MAX_WIDTH] = {0}, h[MAX_WIDTH];

        for (size_t j = first[i]; j < first[i + 1]; j++) {
            double in[MAX_WIDTH], e[MAX_WIDTH];

            for (size_t k = 0; k < s->n_features; k++)
                in[k] = (double)f->x[j * s->n_features + k];
            layer(h, in, w1, b1, s->n_hidden, s->n_features, RELU);
            layer(e, h, w2, b2, s->n_embed, s->n_hidden, form);
            for (size_t k = 0; k < s->n_embed; k++)
                sum[k] += (double)f->batch.weight[j] * e[k];
        }
        for (size_t k = 0; s->is_monotone && k < s->n_embed; k++)
            sum[k] = (log2(1 + sum[k]) - MLP_LOG_MEAN) / MLP_LOG_STD;
        for (size_t k = 0; k < s->n_totals; k++)
            sum[s->n_embed + k] = (double)f->totals[i * s->n_totals + k];
        layer(h, sum, w3, b3, s->n_head, n_in, form);
        layer(&y[i], h, w4, b4, 1, s->n_head, LINEAR);
    }
}

static double loss(const struct fixture *f, const double *params)
{
    double y[N_SAMPLES], sum = 0;

    forward(f, params, y);
    for (size_t i = 0; i < N_SAMPLES; i++)
        sum += (double)f->d_y[i] * y[i];
    return sum;
}

static void test_gradients(uint64_t seed, bool has_totals, bool is_monotone)
{
    static const char *const layers[] = {"w1", "b1", "w2", "b2",
                                         "w3", "b3", "w4", "b4"};
    struct fixture f = {0};
    struct mlp grad;
    struct mlp_work work;
    double want[N_SAMPLES], *params;
    const float *begins[9] = {NULL};

    set_up(&f, seed, has_totals, is_monotone);
    mlp_init(&grad, &f.mlp.shape, &f.arena);
    mlp_work_init(&work, &f.mlp, N_ROWS, N_SAMPLES, &f.arena);
    mlp_forward(&f.mlp, &f.batch, &work);
    memcpy(work.d_out[3], f.d_y, sizeof(f.d_y));
    mlp_backward_head(&f.mlp, &f.batch, &work);
    for (unsigned part = 0; part < MLP_PARTS; part++)
        mlp_backward_part(&f.mlp, &f.batch, part, &work);
    for (unsigned part = 0; part < MLP_PARTS; part++)
        mlp_gradient_part(&f.mlp, &f.batch, part, &work, &grad);
    params = ARENA_NEW(&f.arena, double, f.mlp.n_params);
    for (size_t i = 0; i < f.mlp.n_params; i++)
        params[i] = (double)f.mlp.params[i];
    forward(&f, params, want);
    for (size_t i = 0; i < N_SAMPLES; i++)
        is_near((double)work.out[3][i], want[i], 1e-5,
                "output as in double precision");
    for (size_t k = 0; k < MLP_LAYERS; k++) {
        begins[2 * k] = grad.layers[k].weight;
        begins[2 * k + 1] = grad.layers[k].bias;
    }
    begins[8] = grad.params + grad.n_params;
    for (size_t k = 0; k < 8; k++) {
        double worst = 0, largest = 0;

        for (const float *g = begins[k]; g < begins[k + 1]; g++) {
            const size_t at = (size_t)(g - grad.params);
            const double kept = params[at], step = 1e-6;
            double up, down;

            params[at] = kept + step;
            up = loss(&f, params);
            params[at] = kept - step;
            down = loss(&f, params);
            params[at] = kept;
            worst =
                tap_worst(worst, fabs((up - down) / (2 * step) - (double)*g));
            largest = fmax(largest, fabs((double)*g));
        }
        ok(worst < 1e-5 * (1 + largest) && largest > 0,
           "gradient of %s: off by %.1e at most, largest %.2f", layers[k],
           worst, largest);
    }
    arena_release(&f.arena);
}

/* A monotone net never predicts less if an embedding or one of the totals
 * before the last MLP_FREE is larger. */
static void test_monotone(uint64_t seed)
{
    struct fixture f = {0};
    double before[N_SAMPLES], after[N_SAMPLES], *params;
    size_t n_worse = 0, n_better = 0;

    set_up(&f, seed, true, true);
    params = ARENA_NEW(&f.arena, double, f.mlp.n_params);
    for (size_t i = 0; i < f.mlp.n_params; i++)
        params[i] = (double)f.mlp.params[i];
    forward(&f, params, before);
    for (size_t i = 0; i < N_SAMPLES; i++)
        f.totals[i * N_TOTALS] += 1;
    forward(&f, params, after);
    for (size_t i = 0; i < N_SAMPLES; i++) {
        n_worse += after[i] < before[i];
        n_better += after[i] > before[i];
    }
    weights[0] *= 2;
    forward(&f, params, before);
    weights[0] /= 2;
    ok(!n_worse && n_better == N_SAMPLES && before[0] > after[0],
       "a larger total and a heavier table raise the output");
    arena_release(&f.arena);
}

static void test_adam(void)
{
    struct arena arena = {0};
    struct adam adam;
    float x[2] = {1, -2}, grad[2];
    double want[2] = {1, -2}, m[2] = {0}, v[2] = {0};

    adam_init(&adam, 2, &arena);
    for (int step = 1; step <= 50; step++) {
        for (int i = 0; i < 2; i++) {
            grad[i] = 2 * (x[i] - 3);
            m[i] = 0.9 * m[i] + 0.1 * 2 * (want[i] - 3);
            v[i] = 0.999 * v[i] + 0.001 * pow(2 * (want[i] - 3), 2);
            want[i] *= 1 - 0.1 * 0.01;
            want[i] -= 0.1 * (m[i] / (1 - pow(0.9, step))) /
                       (sqrt(v[i] / (1 - pow(0.999, step))) + 1e-8);
        }
        adam_begin(&adam, 0.1, 0.01);
        adam_update(&adam, x, grad, 1, 2);
        adam_update(&adam, x, grad, 0, 1);
    }
    is_near((double)x[0], want[0], 1e-4, "50 steps of Adam, first parameter");
    is_near((double)x[1], want[1], 1e-4, "50 steps of Adam, second parameter");
    ok(fabs(want[0] - 3) < 1, "and they lead to the minimum");
    arena_release(&arena);
}

int main(void)
{
    struct err err = {0};

    ok(!gemm_init(&err), "OpenBLAS is there: %s", err.msg);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        test_gradients(seed, false, false);
        test_gradients(seed, true, false);
        test_gradients(seed, true, true);
        test_monotone(seed);
    }
    test_adam();
    return tap_done();
}
