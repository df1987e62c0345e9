/* SPDX-License-Identifier: MIT */
#include "exec/reference_net.h"

#include "exec/reference_interaction.h"
#include "exec/reference_product.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The input of a ReLU counts as close to 0 if its absolute value is below this
 * number times the norm of the unit's weights times the norm of its inputs.
 * Single precision errs by less. On both sides the output of the ReLU is about
 * 0 within the limits of the comparison. Only the gradient depends on the
 * side. */
#define KINK_FRAC 1e-5
#define SAMPLES_A_TASK 16

/* Forward and backward of some samples. All arrays have a row for each sample.
 */
struct net_pass {
    struct reference_net *net;
    const struct dense *dense;
    const struct reference_samples *samples;
    struct arena arena; /* memory of all arrays */
    /* [n_products]: input [n][in] of each product, and output [n][out] after
     * the ReLU */
    const double *in[DENSE_MAX_PRODUCTS];
    double *out[DENSE_MAX_PRODUCTS];
    const double *bottom; /* output of the bottom layers */
    double *joined;       /* [n][width] output of the interaction */
    double *bottom_gradient, *joined_gradient;
};

uint64_t reference_net_offset(const struct dense *dense, uint32_t product)
{
    uint64_t n = 0;

    for (uint32_t p = 0; p < product; p++)
        n += dense->products[p].in * dense->products[p].out +
             (dense->products[p].has_bias ? dense->products[p].out : 0);
    return n;
}

void reference_net_init(struct reference_net *net, const struct dense *dense,
                        struct pool *pool)
{
    *net = (struct reference_net){
        .dense = dense,
        .pool = pool,
        .parameters = mem_alloc((size_t)dense->n_parameters, sizeof(double)),
        .gradients = mem_alloc((size_t)dense->n_parameters, sizeof(double)),
    };
}

void reference_net_release(struct reference_net *net)
{
    mem_free(net->parameters);
    mem_free(net->gradients);
    *net = (struct reference_net){0};
}

static double *new_rows(struct net_pass *pass, uint64_t width)
{
    return ARENA_NEW(&pass->arena, double, pass->samples->n *width);
}

static double norm(const double *x, uint64_t n)
{
    double sum = 0;

    for (uint64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* Moves each input of a product's ReLUs that is close to 0 to the side of the
 * executed ReLU. */
static void take_sides(struct net_pass *pass, uint32_t p, const double *weights)
{
    const struct dense_product *product = &pass->dense->products[p];
    const float *executed = pass->samples->executed[p];
    double *norms = ARENA_NEW(&pass->arena, double, product->out);

    for (uint64_t u = 0; u < product->out; u++)
        norms[u] = KINK_FRAC * norm(weights + u * product->in, product->in);
    for (size_t s = 0; s < pass->samples->n; s++) {
        double own = norm(pass->in[p] + s * product->in, product->in);
        double *z = pass->out[p] + s * product->out;

        for (uint64_t u = 0; u < product->out; u++)
            if (fabs(z[u]) < norms[u] * own)
                z[u] = executed[s * product->out + u] > 0 ? fmax(z[u], DBL_MIN)
                                                          : fmin(z[u], 0);
    }
}

/* --- products --- */

/* Computes out[p] from in[p]. */
static void multiply(struct net_pass *pass, uint32_t p)
{
    const struct dense_product *product = &pass->dense->products[p];
    const double *weights =
        pass->net->parameters + reference_net_offset(pass->dense, p);
    const double *bias = weights + product->in * product->out;
    double *out = pass->out[p] = new_rows(pass, product->out);
    size_t n = pass->samples->n * (size_t)product->out;

    reference_multiply(
        pass->net->pool,
        &(struct reference_product){.m = pass->samples->n,
                                    .n = (size_t)product->out,
                                    .k = (size_t)product->in,
                                    .left = {pass->in[p], product->in, 1},
                                    .right = {weights, 1, product->in},
                                    .out = out});
    for (size_t i = 0; product->has_bias && i < n; i++)
        out[i] += bias[i % product->out];
    if (!product->has_relu)
        return;
    if (pass->samples->executed)
        take_sides(pass, p, weights);
    for (size_t i = 0; i < n; i++)
        out[i] = out[i] > 0 ? out[i] : 0;
}

static double largest(const double *x, uint64_t n)
{
    double most = 0;

    for (uint64_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* Adds the sizes of the terms of a product's gradients to net->scales. */
static void add_scales(const struct net_pass *pass, uint32_t p,
                       const double *gradients)
{
    const struct dense_product *product = &pass->dense->products[p];
    double *scales = pass->net->scales + 2 * (size_t)p;

    for (size_t s = 0; s < pass->samples->n; s++) {
        double most = largest(gradients + s * product->out, product->out);

        scales[0] += most * largest(pass->in[p] + s * product->in, product->in);
        scales[1] += most;
    }
}

/* Adds the gradients of the parameters of a product, from the gradients of its
 * outputs [n][out] before the ReLU. Returns the gradients of its inputs
 * [n][in], or NULL if nothing needs them. */
static double *multiply_back(struct net_pass *pass, uint32_t p,
                             const double *gradients)
{
    const struct dense_product *product = &pass->dense->products[p];
    uint64_t offset = reference_net_offset(pass->dense, p);
    double *weights = pass->net->gradients + offset;
    double *bias = weights + product->in * product->out;
    size_t n = pass->samples->n, n_in = (size_t)product->in,
           n_out = (size_t)product->out;
    double *inputs = NULL;

    reference_multiply(pass->net->pool, &(struct reference_product){
                                            .m = n_out,
                                            .n = n_in,
                                            .k = n,
                                            .left = {gradients, 1, n_out},
                                            .right = {pass->in[p], n_in, 1},
                                            .out = weights,
                                            .is_added = true});
    for (size_t i = 0; product->has_bias && i < n * n_out; i++)
        bias[i % n_out] += gradients[i];
    if (pass->net->scales)
        add_scales(pass, p, gradients);
    if (!product->needs_input_gradient)
        return NULL;
    inputs = new_rows(pass, product->in);
    reference_multiply(pass->net->pool,
                       &(struct reference_product){
                           .m = n,
                           .n = n_in,
                           .k = n_out,
                           .left = {gradients, n_out, 1},
                           .right = {pass->net->parameters + offset, n_in, 1},
                           .out = inputs});
    return inputs;
}

/* Runs the products [begin, end) one after the other. Returns the output of the
 * last. */
static const double *layers(struct net_pass *pass, uint32_t begin, uint32_t end,
                            const double *in)
{
    for (uint32_t p = begin; p < end; p++) {
        pass->in[p] = in;
        multiply(pass, p);
        in = pass->out[p];
    }
    return in;
}

/* Runs layers backward, from the gradients of the last layer's outputs after
 * its ReLU. Returns the gradients of the inputs, or NULL. */
static double *layers_back(struct net_pass *pass, uint32_t begin, uint32_t end,
                           double *gradients)
{
    for (uint32_t p = end; p-- > begin;) {
        const struct dense_product *product = &pass->dense->products[p];
        size_t n = pass->samples->n * (size_t)product->out;

        if (product->has_relu) {
            for (size_t i = 0; i < n; i++)
                gradients[i] = pass->out[p][i] > 0 ? gradients[i] : 0;
        }
        gradients = multiply_back(pass, p, gradients);
    }
    return gradients;
}

/* --- interaction --- */

static void join(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct net_pass *pass = ctx;
    const struct dense *dense = pass->dense;
    uint64_t n_bottom = dense_bottom_width(dense);

    (void)thread;
    for (uint64_t s = begin; s < end; s++)
        reference_interact(dense, n_bottom ? pass->bottom + s * n_bottom : NULL,
                           pass->samples->pooled + s * dense->pooled,
                           pass->joined + s * dense->width);
}

static void join_back(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct net_pass *pass = ctx;
    const struct dense *dense = pass->dense;
    uint64_t n_bottom = dense_bottom_width(dense);

    (void)thread;
    for (uint64_t s = begin; s < end; s++)
        reference_interact_back(
            dense, n_bottom ? pass->bottom + s * n_bottom : NULL,
            pass->samples->pooled + s * dense->pooled,
            pass->joined_gradient + s * dense->width,
            pass->bottom_gradient + s * n_bottom,
            pass->samples->pooled_gradients + s * dense->pooled);
}

/* Runs the cross layers: x_{l+1} = x_0 * (W_l V_l x_l + b_l) + x_l. Returns the
 * output of the last. */
static const double *cross(struct net_pass *pass)
{
    const double *x = pass->joined;
    size_t n = pass->samples->n * (size_t)pass->dense->width;

    for (uint32_t p = pass->dense->cross_begin; p < pass->dense->top_begin;
         p += 2) {
        const double *factor = layers(pass, p, p + 2, x);
        double *next = new_rows(pass, pass->dense->width);

        for (size_t i = 0; i < n; i++)
            next[i] = pass->joined[i] * factor[i] + x[i];
        x = next;
    }
    return x;
}

/* Runs the cross layers backward. On entry gradients[n][width] are the
 * gradients of their output, on return those of their input. */
static void cross_back(struct net_pass *pass, double *gradients)
{
    size_t n = pass->samples->n * (size_t)pass->dense->width;
    double *first = new_rows(pass, pass->dense->width);
    double *factor = new_rows(pass, pass->dense->width);

    for (uint32_t p = pass->dense->top_begin; p > pass->dense->cross_begin;
         p -= 2) {
        const double *inner;

        for (size_t i = 0; i < n; i++) {
            first[i] += gradients[i] * pass->out[p - 1][i];
            factor[i] = gradients[i] * pass->joined[i];
        }
        inner = layers_back(pass, p - 2, p, factor);
        for (size_t i = 0; i < n; i++)
            gradients[i] += inner[i];
    }
    for (size_t i = 0; i < n; i++)
        gradients[i] += first[i];
}

/* --- whole passes --- */

/* Returns the sum of the binary cross entropies, and replaces the logits by the
 * gradient of scale * sum. */
static double sum_losses(const struct net_pass *pass, double *logits,
                         double scale)
{
    size_t n = pass->samples->n * dense_n_outputs(pass->dense);
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double z = logits[i], label = pass->samples->labels[i];

        sum += fmax(z, 0) - z * label + log1p(exp(-fabs(z)));
        logits[i] = scale * (1 / (1 + exp(-z)) - label);
    }
    return sum;
}

double reference_net_train(struct reference_net *net,
                           const struct reference_samples *samples,
                           double scale)
{
    const struct dense *dense = net->dense;
    struct net_pass pass = {.net = net, .dense = dense, .samples = samples};
    double loss;

    pass.bottom = layers(&pass, 0, dense->cross_begin, samples->features);
    pass.joined = new_rows(&pass, dense->width);
    pool_run_range(net->pool, samples->n, SAMPLES_A_TASK, join, &pass);
    layers(&pass, dense->top_begin, dense->n_products, cross(&pass));
    loss = sum_losses(&pass, pass.out[dense->n_products - 1], scale);
    pass.joined_gradient =
        layers_back(&pass, dense->top_begin, dense->n_products,
                    pass.out[dense->n_products - 1]);
    cross_back(&pass, pass.joined_gradient);
    pass.bottom_gradient = new_rows(&pass, dense_bottom_width(dense));
    pool_run_range(net->pool, samples->n, SAMPLES_A_TASK, join_back, &pass);
    layers_back(&pass, 0, dense->cross_begin, pass.bottom_gradient);
    arena_release(&pass.arena);
    return loss;
}
