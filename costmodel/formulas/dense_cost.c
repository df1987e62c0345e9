/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/dense_cost.h"

#include "costmodel/formulas/roofline.h"

#include <math.h>

/*
 * Efficiency of a matrix product:
 *
 *     MOST_EFFICIENCY x t / (t + FILL)
 *
 * t is the number of output tiles of TILE x TILE for each SM. A product of few
 * tiles does not fill the GPU. Its time is then the time of one tile, less what
 * cuBLAS gains by cutting the sum of k terms into parts that run side by side.
 * The published products have up to LONGEST_SUM terms; longer sums count as
 * several sums of this length.
 *
 * MOST_EFFICIENCY and FILL are fitted to 118 products of an H100 in bf16 and
 * tf32, and held out on 72 of a B200 (data/measurements/published-gemms.csv;
 * XLA's table of cuBLAS). tests/bench/bench_dense prints the errors:
 *
 *     GPU    type  mean error  geometric mean of predicted / measured
 *     H100   bf16  14 %        1.13
 *     H100   tf32  16 %        0.87
 *     B200   bf16  11 %        1.08  (held out)
 *     B200   tf32   9 %        0.97  (held out)
 *
 * With a launch of 3 us, two launches are also the time of the shortest
 * products on both GPUs.
 */
#define MOST_EFFICIENCY 0.755
#define FILL 0.265
#define TILE 128.
#define LONGEST_SUM 4096.
#define PRODUCT_LAUNCHES 2

double dense_efficiency(const struct gpu_spec *spec, double m, double n,
                        double k)
{
    const double tiles = m * n / (TILE * TILE * spec->n_sms);
    const double t = tiles * fmax(1, k / LONGEST_SUM);

    return MOST_EFFICIENCY * t / (t + FILL);
}

int dense_rate(double *tflops, const struct gpu_spec *spec,
               enum dense_type type, struct err *err)
{
    *tflops = spec->tflops[type];
    if (type == DENSE_TYPE_TF32 && !(*tflops > 0))
        *tflops = spec->tflops[DENSE_TYPE_FP32];
    if (*tflops > 0)
        return 0;
    return err_input(
        err,
        "GPU '%s' has no rate of %s products (%s_tflops of its "
        "file), so a dense part of this type has no price",
        spec->name, dense_type_names[type],
        dense_type_names[type == DENSE_TYPE_TF32 ? DENSE_TYPE_FP32 : type]);
}

/* The GPU, the type and the samples of a price. */
struct dense_pricing {
    const struct gpu_spec *spec;
    const struct dense *dense;
    double tflops;
    uint32_t n_samples;
    /* Measured products; NULL: none of this type were measured. `pairs` is for
     * batches of products, `elements` for operations on elements. */
    const struct product_times *times, *pairs, *elements;
};

static double launches_ms(const struct gpu_spec *spec, double n)
{
    return n * spec->launch_us / 1000;
}

static double bytes_ms(const struct gpu_spec *spec, double bytes)
{
    return bytes / (spec->dram_gbps * 1e6);
}

/* Returns the time of operations on elements that take as long as those of one
 * form on the outputs of a layer. */
static double elements_ms(const struct dense_pricing *pricing,
                          enum product_form form, double n_out)
{
    const double scale =
        dense_type_bytes(pricing->dense->type) / (double)sizeof(float);
    const struct product product =
        dense_relu(form, pricing->n_samples,
                   (uint32_t)fmin(fmax(1, ceil(n_out * scale)), UINT32_MAX));

    return product_times_ms(pricing->elements, &product);
}

/* Returns the time of kernels that read and write this many values for each
 * sample. If operations on elements were measured, it is that of the gradients
 * of bias and ReLU, which read and write four values for each output. */
static double values_ms(const struct dense_pricing *pricing, double n_values,
                        double n_kernels)
{
    if (!(n_values > 0))
        return 0;
    if (pricing->elements)
        return elements_ms(pricing, PRODUCT_RELU_GRADIENT, n_values / 4);
    return bytes_ms(pricing->spec, pricing->n_samples * n_values *
                                       dense_type_bytes(pricing->dense->type)) +
           launches_ms(pricing->spec, n_kernels);
}

/* Returns the time of a product by the figures of the GPU. */
static double figured_ms(const struct dense_pricing *pricing, double m,
                         double n, double k)
{
    const struct gpu_spec *spec = pricing->spec;
    const double flops_ms =
        2 * m * n * k /
        (pricing->tflops * 1e9 * dense_efficiency(spec, m, n, k));
    const double moved_ms = bytes_ms(
        spec, (m * k + k * n + m * n) * dense_type_bytes(pricing->dense->type));

    return fmax(flops_ms, moved_ms) + launches_ms(spec, PRODUCT_LAUNCHES);
}

double dense_product_ms(const struct gpu_spec *spec, enum dense_type type,
                        double m, double n, double k)
{
    const struct dense dense = {.type = type};
    struct dense_pricing pricing = {.spec = spec, .dense = &dense};
    struct err ignored = {0};

    if (dense_rate(&pricing.tflops, spec, type, &ignored))
        return NAN;
    return figured_ms(&pricing, m, n, k);
}

/* Returns the time of the product of a layer. */
static double product_ms(const struct dense_pricing *pricing, uint32_t layer,
                         enum dense_pass pass)
{
    const struct product product =
        dense_layer_product(pricing->dense, &pricing->dense->products[layer],
                            pass, pricing->n_samples);

    return pricing->times
               ? product_times_ms(pricing->times, &product)
               : figured_ms(pricing, product.m, product.n, product.k);
}

/*
 * Number of values that the interaction reads and writes for a sample, and
 * number of its kernels. Eager kernels are counted as in TorchRec's modules
 * (InteractionArch and LowRankCrossNet). A fused kernel reads each input and
 * writes each output once. A cross layer counts without its two products, which
 * are in dense->products.
 */
struct traffic {
    double forward, backward;
    unsigned forward_kernels, backward_kernels;
};

static struct traffic cross_traffic(const struct dense *dense)
{
    const double width = (double)dense->width, n = dense->n_cross;

    if (dense->is_fused)
        return (struct traffic){2 * n * width, 4 * n * width, 0, 0};
    /* sum with the bias, product with the input, sum with the layer's input;
     * backward: two products, the gradient of the bias, two sums */
    return (struct traffic){8 * n * width, 13 * n * width, 3 * dense->n_cross,
                            5 * dense->n_cross};
}

/* are_timed: the products of all pairs are left out, as their times are
 * known. */
static struct traffic dot_traffic(const struct dense *dense, bool are_timed)
{
    const double n = (double)dense->n_vectors, width = (double)dense->width;
    const double vectors = n * dense->dim;
    const double forward = are_timed ? 0 : vectors + n * n;
    const double backward = are_timed ? 0 : 2 * (n * n + 2 * vectors);

    if (dense->is_fused)
        return are_timed ? (struct traffic){0}
                         : (struct traffic){vectors + width,
                                            2 * vectors + width, 1, 1};
    /* forward: join the vectors, multiply all pairs, gather one half of the
     * products, join them with the bottom's output; backward: the reverse, with
     * two products in the place of one and the sum of their results */
    return (struct traffic){2 * vectors + forward + 4 * width,
                            4 * width + n * n + backward + 5 * vectors,
                            are_timed ? 3 : 4, are_timed ? 5 : 7};
}

/* Returns the time of the products of all pairs of vectors, if it is known from
 * measured products, else 0. */
static double pairs_ms(const struct dense_pricing *pricing,
                       enum dense_pass pass)
{
    const struct dense *dense = pricing->dense;
    struct product product;

    if (dense->interaction != INTERACTION_DOT || !pricing->pairs)
        return 0;
    product = dense_dot_product(dense, pass, pricing->n_samples);
    return (pass == DENSE_FORWARD ? 1 : 2) *
           product_times_ms(pricing->pairs, &product);
}

static struct traffic interaction_traffic(const struct dense_pricing *pricing)
{
    const struct dense *dense = pricing->dense;
    const double join = 2 * (double)dense->width;
    struct traffic traffic = {join, join, 1, 1}, cross;

    switch (dense->interaction) {
    case INTERACTION_DOT:
        return dot_traffic(dense, pricing->pairs != NULL);
    case INTERACTION_POOL:
        traffic.forward += (double)dense->pooled;
        traffic.backward += (double)dense->pooled;
        traffic.forward_kernels++;
        traffic.backward_kernels++;
        return traffic;
    case INTERACTION_DCN:
        cross = cross_traffic(dense);
        return (struct traffic){
            traffic.forward + cross.forward, traffic.backward + cross.backward,
            1 + cross.forward_kernels, 1 + cross.backward_kernels};
    case INTERACTION_CAT:
    case N_INTERACTIONS:
    default:
        return traffic;
    }
}

/* Returns the time in which mixed precision copies weights or gradients between
 * fp32 and its type. */
static double copies_ms(const struct dense_pricing *pricing)
{
    const struct dense *dense = pricing->dense;

    return dense_is_mixed(dense)
               ? bytes_ms(pricing->spec, 6 * (double)dense->n_parameters) +
                     launches_ms(pricing->spec, dense->n_products)
               : 0;
}

static double forward_ms(const struct dense_pricing *pricing)
{
    const struct dense *dense = pricing->dense;
    const struct traffic joined = interaction_traffic(pricing);
    double ms = copies_ms(pricing) + pairs_ms(pricing, DENSE_FORWARD) +
                values_ms(pricing, joined.forward, joined.forward_kernels);

    for (uint32_t i = 0; i < dense->n_products; i++) {
        const struct dense_product *product = &dense->products[i];

        ms += product_ms(pricing, i, DENSE_FORWARD);
        if (product->has_relu && !dense->is_fused)
            ms += pricing->elements
                      ? elements_ms(pricing, PRODUCT_RELU, (double)product->out)
                      : values_ms(pricing, 2 * (double)product->out, 1);
    }
    return ms;
}

/* Returns the time of the backward pass of product i. */
static double backward_of_ms(const struct dense_pricing *pricing, uint32_t i)
{
    const struct dense *dense = pricing->dense;
    const struct dense_product *product = &dense->products[i];
    const double out = (double)product->out;
    double ms = product_ms(pricing, i, DENSE_WEIGHT_GRADIENT);

    if (product->needs_input_gradient)
        ms += product_ms(pricing, i, DENSE_INPUT_GRADIENT);
    if (dense->is_fused)
        return ms;
    if (product->has_relu && pricing->elements)
        return ms + elements_ms(pricing, PRODUCT_RELU_GRADIENT, out);
    if (product->has_relu)
        ms += values_ms(pricing, 3 * out, 1);
    if (product->has_bias)
        ms += values_ms(pricing, out, 1);
    return ms;
}

/* Fills ready_ms[n_products] with the times after the begin of the backward
 * pass at which the gradients of each product are done. Returns the time of the
 * whole pass. */
static double backward_ms(const struct dense_pricing *pricing, double *ready_ms)
{
    const struct dense *dense = pricing->dense;
    const struct traffic joined = interaction_traffic(pricing);
    double ms = copies_ms(pricing);

    for (uint32_t i = dense->n_products; i-- > 0;) {
        ms += backward_of_ms(pricing, i);
        ready_ms[i] = ms;
        if (i == dense->cross_begin)
            ms += pairs_ms(pricing, DENSE_INPUT_GRADIENT) +
                  values_ms(pricing, joined.backward, joined.backward_kernels);
    }
    return ms;
}

/* Returns the time in which the optimizer updates the weights. A fused kernel
 * reads and writes the weights and each state once, and reads the gradient. */
static double update_ms(const struct dense_pricing *pricing,
                        const struct problem *problem)
{
    const enum optimizer optimizer = problem_dense_optimizer(problem);
    const double n = (double)pricing->dense->n_parameters;
    const unsigned n_states = optimizer == OPTIMIZER_SGD       ? 0
                              : optimizer == OPTIMIZER_ADAGRAD ? 1
                                                               : 2;

    if (!pricing->dense->is_fused)
        return roofline_update_ms(pricing->spec, n, optimizer);
    return bytes_ms(pricing->spec, n * sizeof(float) * (3 + 2 * n_states)) +
           launches_ms(pricing->spec, 1);
}

/* Prices the all-reduce of the gradients, bucket by bucket. */
static void price_reduce(struct dense_cost *cost,
                         const struct comm_oracle *oracle,
                         const double *ready_ms)
{
    const struct dense *dense = oracle->base.problem->job.dense;
    struct dense_bucket buckets[DENSE_MAX_BUCKETS];
    const uint32_t n = dense_buckets(dense, buckets);
    const unsigned bytes = dense_type_bytes(dense->gradients);
    double end_ms = 0, hidden_ms;

    if (problem_all_devices(oracle->base.problem) == 1)
        return;
    for (uint32_t i = 0; i < n; i++) {
        const double ms =
            comm_allreduce_ms(oracle, (double)buckets[i].n_parameters * bytes);

        end_ms = fmax(end_ms, ready_ms[buckets[i].product]) + ms;
        cost->reduce_ms += ms;
    }
    cost->exposed_ms = fmax(0, end_ms - cost->backward_ms);
    hidden_ms = cost->reduce_ms - cost->exposed_ms;
    cost->exposed_ms += oracle->step.overlap_cost[PHASE_OUTPUT] * hidden_ms;
}

/* Sets the measured products of a price. Returns false if there are none of its
 * type. */
static bool set_times(struct dense_pricing *pricing,
                      const struct product_times *times)
{
    const enum dense_type type = pricing->dense->type;

    if (!times || !product_times_have(times, type))
        return false;
    pricing->times = times;
    if (product_times_have_batches(times, type))
        pricing->pairs = times;
    if (product_times_have_elements(times))
        pricing->elements = times;
    return true;
}

int dense_cost_add(struct comm_oracle *oracle, const struct gpu_spec *spec,
                   const struct product_times *times, struct err *err)
{
    const struct problem *problem = oracle->base.problem;
    const struct dense *dense = problem->job.dense;
    struct dense_pricing pricing = {
        .spec = spec,
        .dense = dense,
        .n_samples = (uint32_t)min_u64(
            UINT32_MAX, (problem->batch + problem->cluster.n_devices - 1) /
                            problem->cluster.n_devices),
    };
    double ready_ms[DENSE_MAX_PRODUCTS];
    struct dense_cost *cost = &oracle->dense;

    if (!dense || job_dense_ms(&problem->job) > 0)
        return 0;
    cost->is_measured = set_times(&pricing, times);
    if (!cost->is_measured &&
        dense_rate(&pricing.tflops, spec, dense->type, err))
        return -1;
    cost->forward_ms = forward_ms(&pricing);
    cost->backward_ms = backward_ms(&pricing, ready_ms);
    cost->update_ms = update_ms(&pricing, problem);
    price_reduce(cost, oracle, ready_ms);
    cost->error_frac = cost->is_measured ? times->error_frac : DENSE_ERROR_FRAC;
    oracle->step.dense_ms += dense_cost_ms(cost);
    oracle->step.dense_reduce_ms = cost->reduce_ms;
    oracle->base.dense = cost;
    return 0;
}
