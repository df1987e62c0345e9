/* SPDX-License-Identifier: MIT */
#include "exec/reference_net.h"

#include "base/rng.h"
#include "exec/reference_interaction.h"
#include "exec/reference_product.h"
#include "tests/tap.h"

/* Three tables, with 2, 1 and 1 outputs of 4 columns. */
#define N_TABLES 3
#define N_SAMPLES 5

/* A small model with drawn parameters and data. */
struct model {
    struct arena arena;
    const struct dense *dense;
    struct reference_net net;
    struct reference_samples samples;
    double *features, *pooled, *labels;
};

static double draw(struct rng *rng)
{
    return rng_uniform(rng) * 2 - 1;
}

static double *draw_all(struct rng *rng, uint64_t n, struct arena *arena)
{
    double *numbers = ARENA_NEW(arena, double, n);

    for (uint64_t i = 0; i < n; i++)
        numbers[i] = draw(rng);
    return numbers;
}

static void model_open(struct model *model, const char *text, size_t n_samples,
                       struct pool *pool)
{
    struct table tables[N_TABLES];
    struct err err = {0};
    struct rng rng;

    *model = (struct model){0};
    for (unsigned t = 0; t < N_TABLES; t++) {
        table_init(&tables[t]);
        tables[t].name = "t";
        tables[t].dim = 4;
        tables[t].num_outputs = t ? 1 : 2;
    }
    if (dense_read(&model->dense, text, strlen(text), tables, N_TABLES,
                   &model->arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    rng_init(&rng, 7, 0);
    reference_net_init(&model->net, model->dense, pool);
    for (uint64_t i = 0; i < model->dense->n_parameters; i++)
        model->net.parameters[i] = draw(&rng);
    model->features = draw_all(&rng, n_samples * model->dense->bottom.width[0],
                               &model->arena);
    model->pooled =
        draw_all(&rng, n_samples * model->dense->pooled, &model->arena);
    model->labels = draw_all(&rng, n_samples * dense_n_outputs(model->dense),
                             &model->arena);
    model->samples = (struct reference_samples){
        .n = n_samples,
        .features = model->features,
        .pooled = model->pooled,
        .labels = model->labels,
        .pooled_gradients =
            ARENA_NEW(&model->arena, double, n_samples * model->dense->pooled),
    };
}

static void model_close(struct model *model)
{
    reference_net_release(&model->net);
    arena_release(&model->arena);
}

/* Returns the central difference of the loss by one number. */
static double slope(struct model *model, double *number)
{
    const double step = 1e-5, old = *number;
    double high, low;

    *number = old + step;
    high = reference_net_train(&model->net, &model->samples, 0);
    *number = old - step;
    low = reference_net_train(&model->net, &model->samples, 0);
    *number = old;
    return (high - low) / (2 * step);
}

/* Compares the gradients of all parameters and of all pooled values with
 * central differences. */
static void test_slopes(const char *text)
{
    const double scale = 0.25;
    double worst = 0, worst_pooled = 0, *gradients;
    struct model model;
    uint64_t n, n_pooled, n_zero = 0;

    model_open(&model, text, N_SAMPLES, NULL);
    n = model.dense->n_parameters;
    n_pooled = N_SAMPLES * model.dense->pooled;
    gradients = ARENA_NEW(&model.arena, double, n_pooled);
    reference_net_train(&model.net, &model.samples, scale);
    for (uint64_t i = 0; i < n_pooled; i++)
        gradients[i] = model.samples.pooled_gradients[i];
    for (uint64_t i = 0; i < n; i++) {
        const double got = model.net.gradients[i];

        n_zero += !(fabs(got) > 0);
        worst = tap_worst(
            worst, fabs(got - scale * slope(&model, &model.net.parameters[i])));
    }
    for (uint64_t i = 0; i < n_pooled; i++)
        worst_pooled = tap_worst(
            worst_pooled,
            fabs(gradients[i] - scale * slope(&model, &model.pooled[i])));
    ok(worst < 1e-8, "%s: gradients of parameters within %.2g", text, worst);
    ok(n_zero < n / 2, "... most of them are not 0");
    ok(worst_pooled < 1e-8, "... of pooled vectors within %.2g", worst_pooled);
    model_close(&model);
}

/* --- forward --- */

static void is_row(const double *got, const double *want, size_t n,
                   const char *name)
{
    double worst = 0;

    for (size_t i = 0; i < n; i++)
        worst = tap_worst(worst, fabs(got[i] - want[i]));
    if (!ok(worst < 1e-12, "%s", name))
        for (size_t i = 0; i < n; i++)
            printf("# %zu: got %g, want %g\n", i, got[i], want[i]);
}

static void test_interactions(void)
{
    static const double bottom[] = {1, 2}, pooled[] = {3, 4, 5, 6, 7};
    static const double cat[] = {1, 2, 3, 4, 5, 6, 7};
    static const double means[] = {1, 2, 4, 6.5};
    /* (3, 4) . (1, 2), (5, 6) . (1, 2), (5, 6) . (3, 4) */
    static const double dots[] = {1, 2, 11, 17, 39}, bare[] = {39};
    struct dense dense = {.bottom = {1, {2}},
                          .interaction = INTERACTION_CAT,
                          .pooled = 5,
                          .stride = 3};
    double out[8];

    reference_interact(&dense, bottom, pooled, out);
    is_row(out, cat, 7, "cat: one vector after the other");
    dense.interaction = INTERACTION_DCN;
    reference_interact(&dense, bottom, pooled, out);
    is_row(out, cat, 7, "dcn: its input is the same");
    dense.interaction = INTERACTION_POOL;
    reference_interact(&dense, bottom, pooled, out);
    is_row(out, means, 4, "pool: the last mean is over what is left");
    dense = (struct dense){.bottom = {1, {2}},
                           .interaction = INTERACTION_DOT,
                           .pooled = 4,
                           .n_vectors = 3,
                           .dim = 2};
    reference_interact(&dense, bottom, pooled, out);
    is_row(out, dots, 5, "dot: products in the order of pairs");
    dense.bottom.n = 0;
    dense.n_vectors = 2;
    reference_interact(&dense, NULL, pooled, out);
    is_row(out, bare, 1, "dot without dense features");
}

/* Loss of a model that is computed by hand: one pooled table of four columns,
 * one cross layer of rank 1 and one output. */
static void test_loss(void)
{
    struct table table;
    const char *text = "interaction:dcn:1x1;top:1";
    /* V, W, b, then the weights and the bias of the top layer */
    static const double parameters[] = {1, 0, 2, 0, 1,  2, 3, 4,  1,
                                        1, 1, 1, 1, -1, 1, 0, 0.5};
    double pooled[] = {1, -1, 0.5, 2}, gradient[4], label[] = {1};
    /* V x = 2, W V x + b = (3, 5, 7, 9); times x, plus x: (4, -6, 4, 20) */
    const double logit = 4 + 6 + 4 + 0.5;
    struct reference_samples samples = {.n = 1,
                                        .pooled = pooled,
                                        .labels = label,
                                        .pooled_gradients = gradient};
    const struct dense *dense;
    struct reference_net net;
    struct arena arena = {0};
    struct err err = {0};

    table_init(&table);
    table.dim = 4;
    if (dense_read(&dense, text, strlen(text), &table, 1, &arena, &err))
        exit(1);
    is_i64((int64_t)dense->n_parameters, 17, "17 parameters");
    reference_net_init(&net, dense, NULL);
    memcpy(net.parameters, parameters, sizeof(parameters));
    is_near(reference_net_train(&net, &samples, 1), log1p(exp(-logit)), 1e-12,
            "the loss of a one");
    is_near(net.gradients[16], -exp(-logit) / (1 + exp(-logit)), 1e-15,
            "... and the gradient of its bias");
    label[0] = 0;
    is_near(reference_net_train(&net, &samples, 1), logit + log1p(exp(-logit)),
            1e-12, "the loss of a zero");
    reference_net_release(&net);
    arena_release(&arena);
}

static void test_products(void)
{
    static const size_t sizes[][3] = {
        {1, 1, 1}, {4, 16, 3}, {5, 17, 4}, {7, 33, 11}, {3, 2, 0}};
    struct pool *pool = pool_open(2);
    double left[7 * 11], right[33 * 11], out[7 * 33], worst = 0;
    struct rng rng;

    rng_init(&rng, 3, 0);
    for (size_t i = 0; i < 7 * 11; i++)
        left[i] = draw(&rng);
    for (size_t i = 0; i < 33 * 11; i++)
        right[i] = draw(&rng);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];

        for (size_t j = 0; j < m * n; j++)
            out[j] = (double)j;
        reference_multiply(pool,
                           &(struct reference_product){.m = m,
                                                       .n = n,
                                                       .k = k,
                                                       .left = {left, k, 1},
                                                       .right = {right, 1, k},
                                                       .out = out,
                                                       .is_added = true});
        for (size_t j = 0; j < m * n; j++) {
            double want = (double)j;

            for (size_t l = 0; l < k; l++)
                want += left[j / n * k + l] * right[j % n * k + l];
            worst = tap_worst(worst, fabs(out[j] - want));
        }
    }
    ok(worst < 1e-13, "products of all sizes within %.2g", worst);
    pool_close(pool);
}

/* Results do not depend on the number of threads. */
static void test_threads(void)
{
    const char *text = "bottom:3-40-4;interaction:dcn:2x5;top:70-2";
    struct pool *pool = pool_open(2);
    struct model one, two;
    double losses[2];
    size_t n_bytes;

    model_open(&one, text, 70, NULL);
    model_open(&two, text, 70, pool);
    losses[0] = reference_net_train(&one.net, &one.samples, 1);
    losses[1] = reference_net_train(&two.net, &two.samples, 1);
    n_bytes = one.dense->n_parameters * sizeof(double);
    ok(!memcmp(&losses[0], &losses[1], sizeof(double)) &&
           !memcmp(one.net.gradients, two.net.gradients, n_bytes) &&
           !memcmp(one.samples.pooled_gradients, two.samples.pooled_gradients,
                   70 * one.dense->pooled * sizeof(double)),
       "threads change no bit");
    model_close(&one);
    model_close(&two);
    pool_close(pool);
}

/* --- ReLUs close to 0 --- */

/* Moves the bias of unit 1 of bottom layer 1 so that the input of its ReLU for
 * sample 3 is `input`. */
static void set_input(struct model *model, double input)
{
    double *weights = model->net.parameters, *bias = weights + 3 * 6;
    const double *features = model->features + (size_t)3 * 3;

    bias[1] = input;
    for (unsigned i = 0; i < 3; i++)
        bias[1] -= weights[3 + i] * features[i];
}

/* Returns the gradient of the bias of unit 1. `side` is the executed output of
 * its ReLU for sample 3; NAN: nothing was executed. */
static double gradient_of(struct model *model, double input, float side)
{
    static float first[N_SAMPLES * 6], second[N_SAMPLES * 4],
        third[N_SAMPLES * 3];
    static const float *const executed[DENSE_MAX_PRODUCTS] = {first, second,
                                                              third};

    first[3 * 6 + 1] = side;
    model->samples.executed = isnan(side) ? NULL : executed;
    set_input(model, input);
    memset(model->net.gradients, 0,
           model->dense->n_parameters * sizeof(double));
    reference_net_train(&model->net, &model->samples, 1);
    return model->net.gradients[3 * 6 + 1];
}

/* A ReLU that is close to 0 takes the executed side, and no other does. */
static void test_sides(void)
{
    const char *text = "bottom:3-6-4;interaction:dot;top:3-1";
    double above, below;
    struct model model;

    model_open(&model, text, N_SAMPLES, NULL);
    above = gradient_of(&model, 1e-8, NAN);
    below = gradient_of(&model, -1e-8, NAN);
    ok(fabs(above - below) > 1e-6, "the sides of 0 differ by %.2g",
       fabs(above - below));
    is_near(gradient_of(&model, 1e-8, 1), above, 1e-7, "above as executed");
    is_near(gradient_of(&model, 1e-8, 0), below, 1e-7, "executed below");
    is_near(gradient_of(&model, -1e-8, 1), above, 1e-7, "executed above");
    is_near(gradient_of(&model, -1e-8, 0), below, 1e-7, "below as executed");
    above = gradient_of(&model, 1e-2, NAN);
    is_near(gradient_of(&model, 1e-2, 0), above, 0, "far from 0 it does not");
    model_close(&model);
}

int main(void)
{
    test_slopes("bottom:3-5-4;interaction:cat;top:6-2");
    test_slopes("bottom:3-5-4;interaction:dot;top:6-2");
    test_slopes("bottom:3-5-4;interaction:dcn:2x3;top:6-2");
    test_slopes("bottom:3-5-4;interaction:pool:5;top:6-2");
    test_slopes("bottom:3;interaction:cat;top:6-5-1");
    test_slopes("interaction:dot;top:4-1");
    test_slopes("interaction:pool:3;top:1");
    test_interactions();
    test_loss();
    test_products();
    test_threads();
    test_sides();
    return tap_done();
}
