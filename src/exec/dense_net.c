/* SPDX-License-Identifier: MIT */
#include "exec/dense_net.h"

#include <math.h>
#include <string.h>

/* --- memory --- */

/* Returns the next part of the net's memory: n_rows x n_cols floats. */
static float *part(struct device_parts *parts, uint64_t n_rows, uint64_t n_cols)
{
    return device_part(parts, n_rows * n_cols * sizeof(float));
}

static unsigned n_states(enum optimizer optimizer)
{
    return optimizer == OPTIMIZER_ADAM ? 2 : optimizer == OPTIMIZER_ADAGRAD;
}

/* Lays out the parameters, their gradients and the states. Then finds the
 * parameters and gradients of each layer in them. */
static void lay_out_parameters(struct dense_net *net,
                               struct device_parts *parts)
{
    const struct dense *dense = net->dense;
    uint64_t pos = 0;

    net->d_parameters = part(parts, 1, dense->n_parameters);
    net->d_gradients = part(parts, 1, dense->n_parameters);
    for (unsigned i = 0; i < n_states(net->optimizer); i++)
        net->d_state[i] = part(parts, 1, dense->n_parameters);
    for (uint32_t i = 0; i < dense->n_products && net->d_parameters; i++) {
        const struct dense_product *product = &dense->products[i];
        struct dense_layer *layer = &net->layers[i];

        layer->d_weight = net->d_parameters + pos;
        layer->d_weight_gradient = net->d_gradients + pos;
        pos += product->in * product->out;
        if (!product->has_bias)
            continue;
        layer->d_bias = net->d_parameters + pos;
        layer->d_bias_gradient = net->d_gradients + pos;
        pos += product->out;
    }
}

/* Lays out the matrices of the interaction, and sets the places of the pooled
 * vectors. With cat and dcn the pooled vectors are columns of the joined
 * matrix, so that they need not be copied. */
static void lay_out_interaction(struct dense_net *net,
                                struct device_parts *parts)
{
    const struct dense *dense = net->dense;
    const uint64_t n = net->n_samples, width = dense->width;
    const uint64_t n_values = dense->n_vectors * dense->dim;
    uint64_t begin = dense_bottom_width(dense), stride = width;
    float *d_pooled, *d_gradient;

    net->d_crossed = part(parts, (dense->n_cross + (uint64_t)1) * n, width);
    net->d_joined = net->d_crossed;
    net->d_joined_gradient = part(parts, n, width);
    net->d_crossed_gradient =
        dense->n_cross ? part(parts, n, width) : net->d_joined_gradient;
    d_pooled = net->d_joined;
    d_gradient = net->d_joined_gradient;
    if (dense->interaction == INTERACTION_DOT) {
        d_pooled = net->d_vectors = part(parts, n, n_values);
        d_gradient = net->d_vectors_gradient = part(parts, n, n_values);
        net->d_products = part(parts, n, dense->n_vectors * dense->n_vectors);
        stride = n_values;
    }
    if (dense->interaction == INTERACTION_POOL) {
        d_pooled = part(parts, n, dense->pooled);
        d_gradient = part(parts, n, dense->pooled);
        begin = 0;
        stride = dense->pooled;
    }
    if (!d_pooled)
        return;
    net->pooled = (struct device_matrix){d_pooled + begin, stride};
    net->pooled_gradient = (struct device_matrix){d_gradient + begin, stride};
}

/* Lays out the outputs of the layers. The input of a layer is the output of the
 * layer before it, or of the interaction. */
static void lay_out_layers(struct dense_net *net, struct device_parts *parts)
{
    const struct dense *dense = net->dense;
    const uint64_t n = net->n_samples;

    for (uint32_t i = 0; i < dense->n_products; i++) {
        struct dense_layer *layer = &net->layers[i];
        const struct dense_product *product = &dense->products[i];

        layer->product = product;
        layer->d_out = part(parts, n, product->out);
        layer->d_out_gradient = part(parts, n, product->out);
        layer->d_in = i ? layer[-1].d_out : net->d_features;
        layer->d_in_gradient = i ? layer[-1].d_out_gradient : NULL;
        if (i >= dense->cross_begin && i < dense->top_begin &&
            (i - dense->cross_begin) % 2 == 0) {
            uint64_t before = (i - dense->cross_begin) / 2 * n * dense->width;

            layer->d_in = net->d_crossed ? net->d_crossed + before : NULL;
            layer->d_in_gradient = net->d_crossed_gradient;
        }
        if (i == dense->top_begin) {
            layer->d_in = net->d_crossed ? net->d_crossed +
                                               dense->n_cross * n * dense->width
                                         : NULL;
            layer->d_in_gradient = net->d_crossed_gradient;
        }
    }
    net->d_logits = net->layers[dense->n_products - 1].d_out;
}

/* Divides d_block into the net's matrices. Returns the bytes of the block,
 * which may be NULL to find its size. */
static size_t lay_out(struct dense_net *net, char *d_block)
{
    const struct dense *dense = net->dense;
    const uint64_t n = net->n_samples;
    struct device_parts parts = {d_block, 0};

    lay_out_parameters(net, &parts);
    net->d_features = part(&parts, n, dense_n_features(dense));
    net->d_labels = part(&parts, n, dense_n_outputs(dense));
    net->d_losses = part(&parts, n, dense_n_outputs(dense));
    net->d_ones = part(&parts, n, 1);
    lay_out_interaction(net, &parts);
    lay_out_layers(net, &parts);
    return parts.n_bytes;
}

size_t dense_net_bytes(const struct dense *dense, uint32_t n_samples,
                       enum optimizer optimizer)
{
    struct dense_net net = {
        .dense = dense, .n_samples = n_samples, .optimizer = optimizer};

    return lay_out(&net, NULL);
}

int dense_net_open(struct dense_net *net, const struct dense *dense,
                   uint32_t n_samples, enum optimizer optimizer, float rate,
                   struct device *device, struct gemm_library *library,
                   struct err *err)
{
    *net = (struct dense_net){.dense = dense,
                              .device = device,
                              .blas = library,
                              .n_samples = n_samples,
                              .optimizer = optimizer,
                              .rate = rate};
    if (device_alloc(device, (void **)&net->d_block, lay_out(net, NULL), err))
        return -1;
    lay_out(net, net->d_block);
    for (unsigned i = 0; i < n_states(optimizer); i++)
        if (device_set(device, net->d_state[i], dense->n_parameters, 0, err))
            return -1;
    return n_samples ? device_set(device, net->d_ones, n_samples, 1, err) : 0;
}

void dense_net_close(struct dense_net *net)
{
    if (net->device)
        device_free(net->device, net->d_block);
    *net = (struct dense_net){0};
}

/* --- operations --- */

/* Computes c = op(a) op(b), m x n, with k products for each element. */
static int multiply(const struct dense_net *net, struct gemm gemm,
                    const float *d_a, const float *d_b, float *d_c,
                    struct err *err)
{
    gemm.n_batch = gemm.n_batch ? gemm.n_batch : 1;
    gemm.math = net->dense->type == DENSE_TYPE_TF32 ? GEMM_TF32 : GEMM_FP32;
    return gemm_queue(net->blas, &gemm, d_a, d_b, d_c, err);
}

/* Runs an operation on matrices of n_samples rows. */
static int apply(const struct dense_net *net, enum elementwise_kind kind,
                 uint64_t n_cols, struct device_matrix out,
                 struct device_matrix a, struct device_matrix b,
                 struct err *err)
{
    const struct elementwise job = {.kind = kind,
                                    .n_rows = net->n_samples,
                                    .n_cols = n_cols,
                                    .out = out,
                                    .a = a,
                                    .b = b};

    return n_cols ? device_elementwise(net->device, &job, err) : 0;
}

static struct device_matrix matrix(float *d_at, uint64_t stride)
{
    return (struct device_matrix){d_at, stride};
}
static const struct device_matrix none;

static int layer_forward(const struct dense_net *net,
                         const struct dense_layer *layer, struct err *err)
{
    const struct dense_product *product = layer->product;
    const struct gemm gemm = {.transpose_b = true,
                              .m = net->n_samples,
                              .n = (uint32_t)product->out,
                              .k = (uint32_t)product->in};

    if (multiply(net, gemm, layer->d_in, layer->d_weight, layer->d_out, err))
        return -1;
    if (!product->has_bias)
        return 0;
    return apply(net,
                 product->has_relu ? ELEMENTWISE_BIAS_RELU : ELEMENTWISE_ADD,
                 product->out, matrix(layer->d_out, product->out),
                 matrix(layer->d_bias, 0), none, err);
}

/* Computes the gradients of a layer's parameters and input from the gradient of
 * its output. If adds_input is set, adds the gradient of the input. */
static int layer_backward(const struct dense_net *net,
                          const struct dense_layer *layer, bool adds_input,
                          struct err *err)
{
    const struct dense_product *product = layer->product;
    const uint32_t in = (uint32_t)product->in, out = (uint32_t)product->out;
    const uint32_t n = net->n_samples;
    const struct gemm bias = {.m = 1, .n = out, .k = n};
    const struct gemm weight = {.transpose_a = true, .m = out, .n = in, .k = n};
    const struct gemm input = {.m = n, .n = in, .k = out, .adds = adds_input};

    if ((product->has_relu && apply(net, ELEMENTWISE_RELU_GRADIENT, out,
                                    matrix(layer->d_out_gradient, out),
                                    matrix(layer->d_out, out), none, err)) ||
        (product->has_bias &&
         multiply(net, bias, net->d_ones, layer->d_out_gradient,
                  layer->d_bias_gradient, err)) ||
        multiply(net, weight, layer->d_out_gradient, layer->d_in,
                 layer->d_weight_gradient, err))
        return -1;
    return product->needs_input_gradient
               ? multiply(net, input, layer->d_out_gradient, layer->d_weight,
                          layer->d_in_gradient, err)
               : 0;
}

/* --- interaction --- */

/* Computes the products of all pairs of vectors of each sample. */
static int dot_forward(struct dense_net *net, struct err *err)
{
    const struct dense *dense = net->dense;
    const uint32_t n = (uint32_t)dense->n_vectors, dim = dense->dim;
    const uint64_t n_pairs = (uint64_t)n * n;
    const struct gemm gemm = {.transpose_b = true,
                              .m = n,
                              .n = n,
                              .k = dim,
                              .n_batch = net->n_samples,
                              .stride_a = (uint64_t)n * dim,
                              .stride_b = (uint64_t)n * dim,
                              .stride_c = n_pairs};
    const struct elementwise pairs = {
        .kind = ELEMENTWISE_PAIRS,
        .n_rows = net->n_samples,
        .n_cols = n_pairs,
        .out = {net->d_joined + dense_bottom_width(dense), dense->width},
        .a = {net->d_products, n_pairs},
        .size = n};

    return multiply(net, gemm, net->d_vectors, net->d_vectors, net->d_products,
                    err) ||
                   device_elementwise(net->device, &pairs, err)
               ? -1
               : 0;
}

/* If Z = V V' and G is the gradient of Z, the gradient of V is (G + G') V. */
static int dot_backward(struct dense_net *net, struct err *err)
{
    const struct dense *dense = net->dense;
    const uint32_t n = (uint32_t)dense->n_vectors, dim = dense->dim;
    const uint64_t n_pairs = (uint64_t)n * n;
    const struct elementwise pairs = {
        .kind = ELEMENTWISE_PAIRS_GRADIENT,
        .n_rows = net->n_samples,
        .n_cols = n_pairs,
        .out = {net->d_products, n_pairs},
        .a = {net->d_joined_gradient + dense_bottom_width(dense), dense->width},
        .size = n};
    const struct gemm gemm = {.m = n,
                              .n = dim,
                              .k = n,
                              .n_batch = net->n_samples,
                              .stride_a = n_pairs,
                              .stride_b = (uint64_t)n * dim,
                              .stride_c = (uint64_t)n * dim};

    return device_elementwise(net->device, &pairs, err) ||
                   multiply(net, gemm, net->d_products, net->d_vectors,
                            net->d_vectors_gradient, err)
               ? -1
               : 0;
}

static int pool(struct dense_net *net, bool is_gradient, struct err *err)
{
    const struct dense *dense = net->dense;
    const uint32_t begin = dense_bottom_width(dense);
    struct device_matrix means = {net->d_joined + begin, dense->width};
    struct device_matrix gradient = {net->d_joined_gradient + begin,
                                     dense->width};
    const struct elementwise job = {
        .kind = is_gradient ? ELEMENTWISE_MEANS_GRADIENT : ELEMENTWISE_MEANS,
        .n_rows = net->n_samples,
        .n_cols = is_gradient ? dense->pooled : dense->width - begin,
        .out = is_gradient ? net->pooled_gradient : means,
        .a = is_gradient ? gradient : net->pooled,
        .size = dense->stride,
        .n_in = dense->pooled};

    return device_elementwise(net->device, &job, err);
}

/* Writes the input of the cross or top layers. */
static int join(struct dense_net *net, struct err *err)
{
    const struct dense *dense = net->dense;
    const uint32_t n_bottom = dense_bottom_width(dense);
    const struct device_matrix bottom =
        matrix(dense->cross_begin ? net->layers[dense->cross_begin - 1].d_out
                                  : net->d_features,
               n_bottom);

    if (apply(net, ELEMENTWISE_COPY, n_bottom,
              matrix(net->d_joined, dense->width), bottom, none, err))
        return -1;
    if (dense->interaction == INTERACTION_POOL)
        return pool(net, false, err);
    if (dense->interaction != INTERACTION_DOT)
        return 0;
    return apply(net, ELEMENTWISE_COPY, n_bottom,
                 matrix(net->d_vectors, dense->n_vectors * dense->dim), bottom,
                 none, err) ||
                   dot_forward(net, err)
               ? -1
               : 0;
}

/* Splits the gradient of the joined matrix into the gradients of the bottom
 * layers' output and of the pooled vectors. */
static int split(struct dense_net *net, struct err *err)
{
    const struct dense *dense = net->dense;
    const uint32_t n_bottom =
        dense->cross_begin ? dense_bottom_width(dense) : 0;
    const struct device_matrix bottom = matrix(
        n_bottom ? net->layers[dense->cross_begin - 1].d_out_gradient : NULL,
        n_bottom);

    if (apply(net, ELEMENTWISE_COPY, n_bottom, bottom,
              matrix(net->d_joined_gradient, dense->width), none, err))
        return -1;
    if (dense->interaction == INTERACTION_POOL)
        return pool(net, true, err);
    if (dense->interaction != INTERACTION_DOT)
        return 0;
    return dot_backward(net, err) ||
                   apply(net, ELEMENTWISE_ADD, n_bottom, bottom,
                         matrix(net->d_vectors_gradient,
                                dense->n_vectors * dense->dim),
                         none, err)
               ? -1
               : 0;
}

/* --- cross layers: x' = x0 (W (V x) + b) + x --- */

static int cross_forward(struct dense_net *net, struct err *err)
{
    const struct dense *dense = net->dense;
    const uint64_t width = dense->width, step = net->n_samples * width;

    for (uint32_t i = 0; i < dense->n_cross; i++) {
        struct dense_layer *pair = &net->layers[dense->cross_begin + 2 * i];
        const struct elementwise job = {
            .kind = ELEMENTWISE_MULTIPLY_ADD,
            .n_rows = net->n_samples,
            .n_cols = width,
            .out = {net->d_crossed + (i + 1) * step, width},
            .a = {net->d_joined, width},
            .b = {pair[1].d_out, width},
            .c = {net->d_crossed + i * step, width}};

        if (layer_forward(net, &pair[0], err) ||
            layer_forward(net, &pair[1], err) ||
            device_elementwise(net->device, &job, err))
            return -1;
    }
    return 0;
}

/* On entry d_crossed_gradient is the gradient of the last x. It becomes the
 * gradient of each earlier x in turn. d_joined_gradient adds up the gradients
 * of x0 as a factor, and at the end the gradient of the first x, which is
 * x0. */
static int cross_backward(struct dense_net *net, struct err *err)
{
    const struct dense *dense = net->dense;
    const uint64_t width = dense->width;
    const struct device_matrix joined = matrix(net->d_joined, width);
    const struct device_matrix sum = matrix(net->d_joined_gradient, width);
    const struct device_matrix own = matrix(net->d_crossed_gradient, width);

    for (uint32_t i = dense->n_cross; i-- > 0;) {
        struct dense_layer *pair = &net->layers[dense->cross_begin + 2 * i];
        const bool is_last = i + 1 == dense->n_cross;

        if (apply(net, ELEMENTWISE_MULTIPLY, width,
                  matrix(pair[1].d_out_gradient, width), own, joined, err) ||
            apply(net, is_last ? ELEMENTWISE_MULTIPLY : ELEMENTWISE_ADD_PRODUCT,
                  width, sum, own, matrix(pair[1].d_out, width), err) ||
            layer_backward(net, &pair[1], false, err) ||
            layer_backward(net, &pair[0], true, err))
            return -1;
    }
    return dense->n_cross
               ? apply(net, ELEMENTWISE_ADD, width, sum, own, none, err)
               : 0;
}

/* --- a step --- */

int dense_net_forward(struct dense_net *net, struct err *err)
{
    const struct dense *dense = net->dense;
    const uint32_t n_last = dense_n_outputs(dense);

    if (!net->n_samples)
        return 0;
    for (uint32_t i = 0; i < dense->cross_begin; i++)
        if (layer_forward(net, &net->layers[i], err))
            return -1;
    if (join(net, err) || cross_forward(net, err))
        return -1;
    for (uint32_t i = dense->top_begin; i < dense->n_products; i++)
        if (layer_forward(net, &net->layers[i], err))
            return -1;
    return apply(net, ELEMENTWISE_LOSS, n_last, matrix(net->d_losses, n_last),
                 matrix(net->d_logits, n_last), matrix(net->d_labels, n_last),
                 err);
}

static int loss_gradient(struct dense_net *net, uint64_t n_global,
                         struct err *err)
{
    const uint32_t n_last = dense_n_outputs(net->dense);
    const struct dense_layer *last = &net->layers[net->dense->n_products - 1];
    const struct elementwise job = {
        .kind = ELEMENTWISE_LOSS_GRADIENT,
        .n_rows = net->n_samples,
        .n_cols = n_last,
        .out = {last->d_out_gradient, n_last},
        .a = {net->d_logits, n_last},
        .b = {net->d_labels, n_last},
        .scale = (float)(1 / ((double)n_global * n_last))};

    return device_elementwise(net->device, &job, err);
}

int dense_net_backward(struct dense_net *net, uint64_t n_global,
                       struct err *err)
{
    const struct dense *dense = net->dense;

    if (!net->n_samples)
        return device_set(net->device, net->d_gradients, dense->n_parameters, 0,
                          err);
    if (loss_gradient(net, n_global, err))
        return -1;
    for (uint32_t i = dense->n_products; i-- > dense->top_begin;)
        if (layer_backward(net, &net->layers[i], false, err))
            return -1;
    if (cross_backward(net, err) || split(net, err))
        return -1;
    for (uint32_t i = dense->cross_begin; i-- > 0;)
        if (layer_backward(net, &net->layers[i], false, err))
            return -1;
    return 0;
}

int dense_net_update(struct dense_net *net, struct err *err)
{
    const uint64_t n = net->dense->n_parameters;
    struct elementwise job = {.kind = ELEMENTWISE_SGD,
                              .n_rows = 1,
                              .n_cols = n,
                              .out = {net->d_parameters, n},
                              .a = {net->d_gradients, n},
                              .d_state = {net->d_state[0], net->d_state[1]},
                              .scale = net->rate};
    const double step = ++net->n_steps;

    if (net->optimizer == OPTIMIZER_ADAGRAD)
        job.kind = ELEMENTWISE_ADAGRAD;
    if (net->optimizer == OPTIMIZER_ADAM) {
        job.kind = ELEMENTWISE_ADAM;
        job.scale = (float)((double)net->rate /
                            (1 - pow((double)ELEMENTWISE_ADAM_BETA1, step)));
        job.root = (float)sqrt(1 - pow((double)ELEMENTWISE_ADAM_BETA2, step));
    }
    return device_elementwise(net->device, &job, err);
}
