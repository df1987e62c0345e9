/* SPDX-License-Identifier: MIT */
#include "microbench/product_case.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/rng.h"
#include "device/elementwise.h"
#include "device/gemm.h"
#include "device/repetitions.h"

#include <math.h>

/* Repetitions: the first two load the library's kernels. */
#define N_WARM_UP 2
#define MIN_ITERATIONS 5
#define MAX_ITERATIONS 12
/* A repetition computes short products several times, so that it takes this
 * long. The time stamps of a GPU take microseconds themselves. The products are
 * so few that they can be queued in 0.2 ms (device_delay). */
#define LEAST_MS 0.1
#define MAX_RUNS 16
#define SEED 46

/* --- the grid --- */

static const uint32_t grid_samples[] = {64, 256, 1024, 4096, 16384, 65536};
/* 13: the dense features of Criteo's data; 1: the logit */
static const uint32_t grid_in[] = {13, 32, 128, 512, 2048, 4096};
static const uint32_t grid_out[] = {1, 32, 128, 512, 2048, 4096};
/* Products of all pairs of vectors. */
static const uint32_t grid_vectors[] = {9, 27, 81};
static const uint32_t grid_dims[] = {16, 64, 128};
static const uint32_t grid_batches[] = {256, 2048, 16384};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Largest products. */
#define HOST_OPERATIONS 2.2e9
#define HOST_BYTES ((uint64_t)256 << 20)
#define GPU_OPERATIONS 1e12
#define GPU_BYTES ((uint64_t)4 << 30)

struct shape_grid {
    struct product *products;
    size_t n;
    double max_operations;
    uint64_t max_bytes;
};

static void add(struct shape_grid *grid, struct product product)
{
    if (product_operations(&product) > grid->max_operations ||
        product_bytes(&product) > (double)grid->max_bytes)
        return;
    grid->products[grid->n++] = product;
}

static void add_layers(struct shape_grid *grid, enum dense_type type)
{
    const struct dense dense = {.type = type};

    for (size_t s = 0; s < COUNT(grid_samples); s++)
        for (size_t i = 0; i < COUNT(grid_in); i++)
            for (size_t o = 0; o < COUNT(grid_out); o++)
                for (int pass = 0; pass < N_DENSE_PASSES; pass++) {
                    const struct dense_product layer = {.in = grid_in[i],
                                                        .out = grid_out[o]};

                    add(grid, dense_layer_product(&dense, &layer,
                                                  (enum dense_pass)pass,
                                                  grid_samples[s]));
                }
}

/* Operations on elements. */
static void add_relus(struct shape_grid *grid)
{
    for (size_t s = 0; s < COUNT(grid_samples); s++)
        for (size_t o = 0; o < COUNT(grid_out); o++)
            for (int form = PRODUCT_RELU; form <= PRODUCT_RELU_GRADIENT; form++)
                add(grid, dense_relu((enum product_form)form, grid_samples[s],
                                     grid_out[o]));
}

static void add_pairs(struct shape_grid *grid, enum dense_type type)
{
    for (size_t v = 0; v < COUNT(grid_vectors); v++)
        for (size_t d = 0; d < COUNT(grid_dims); d++)
            for (size_t b = 0; b < COUNT(grid_batches); b++) {
                const struct dense dense = {.type = type,
                                            .n_vectors = grid_vectors[v],
                                            .dim = grid_dims[d]};

                add(grid,
                    dense_dot_product(&dense, DENSE_FORWARD, grid_batches[b]));
                add(grid, dense_dot_product(&dense, DENSE_INPUT_GRADIENT,
                                            grid_batches[b]));
            }
}

size_t product_grid(struct product *products, bool is_host, uint64_t max_bytes)
{
    static const enum dense_type types[] = {DENSE_TYPE_FP32, DENSE_TYPE_TF32,
                                            DENSE_TYPE_BF16};
    struct shape_grid grid = {
        products, 0, is_host ? HOST_OPERATIONS : GPU_OPERATIONS,
        min_u64(max_bytes, is_host ? HOST_BYTES : GPU_BYTES)};
    struct rng rng;

    for (size_t t = 0; t < (is_host ? 1 : COUNT(types)); t++) {
        add_layers(&grid, types[t]);
        add_pairs(&grid, types[t]);
    }
    add_relus(&grid);
    rng_init(&rng, SEED, 0);
    for (size_t i = grid.n; i > 1; i--) {
        const size_t j = (size_t)rng_below(&rng, i);
        const struct product swapped = products[j];

        products[j] = products[i - 1];
        products[i - 1] = swapped;
    }
    return grid.n;
}

/* --- one product --- */

struct product_run {
    struct device *device;     /* not owned */
    struct gemm_library *blas; /* owned */
    struct gemm gemm;
    enum product_form form;
    struct device_region region; /* owned */
    void *d_a, *d_b, *d_c;       /* in the region */
    unsigned n_runs;             /* products in a repetition */
};

/* Lays the matrices out, and fills a and b with small numbers. bf16 matrices
 * get fp16 numbers, whose bits are finite numbers in bf16, too. */
static int prepare(struct product_run *run, const struct product *product,
                   struct err *err)
{
    static const enum gemm_math math[N_DENSE_TYPES] = {
        [DENSE_TYPE_FP32] = GEMM_FP32,
        [DENSE_TYPE_TF32] = GEMM_TF32,
        [DENSE_TYPE_BF16] = GEMM_BF16};
    const uint64_t m = product->m, n = product->n, k = product->k;
    /* operations on elements: a is a second matrix [m][n] */
    const uint64_t n_a =
        m * (product->form < PRODUCT_RELU ? k : n) * product->n_batch;
    const uint64_t n_b = k * n * product->n_batch;
    const uint64_t bytes = dense_type_bytes(product->type);
    const enum precision precision =
        product->type == DENSE_TYPE_BF16 ? PRECISION_FP16 : PRECISION_FP32;

    if (product->type == DENSE_TYPE_FP16)
        return err_set(err, ERR_DEVICE,
                       "matrix products in fp16 are not measured: those in "
                       "bf16 take the same time");
    run->form = product->form;
    run->gemm = (struct gemm){.transpose_a = product->form == PRODUCT_TN,
                              .transpose_b = product->form == PRODUCT_NT,
                              .m = product->m,
                              .n = product->n,
                              .k = product->k,
                              .n_batch = product->n_batch,
                              .stride_a = m * k,
                              .stride_b = k * n,
                              .stride_c = m * n,
                              .math = math[product->type]};
    for (int pass = 0; pass < 2; pass++) {
        struct device_parts parts = {run->region.d_ptr, 0};

        run->d_a = device_part(&parts, n_a * bytes);
        run->d_b = device_part(&parts, n_b * bytes);
        run->d_c =
            device_part(&parts, m * n * product->n_batch * sizeof(float));
        if (!pass &&
            device_reserve(run->device, &run->region, parts.n_bytes, err))
            return -1;
    }
    return device_fill(run->device, run->d_a, n_a, precision, SEED, err) ||
                   device_fill(run->device, run->d_b, n_b, precision, SEED + 1,
                               err)
               ? -1
               : 0;
}

/* Processor time of the calling thread and of the process, in ms. */
struct processor_time {
    double thread_ms, process_ms;
};

static struct processor_time used_now(void)
{
    return (struct processor_time){clock_thread_ms(), clock_process_ms()};
}

/* Returns the part of `ms` in which the threads of a CPU computed, without the
 * time in which other programs had the processors. It is the processor time of
 * the calling thread, which computes a part of each product, or the mean of all
 * threads if that is more. */
static double computing_ms(const struct device *device,
                           const struct processor_time *begin, double ms)
{
    const struct processor_time end = used_now();
    const double thread_ms = end.thread_ms - begin->thread_ms;
    const double mean_ms =
        (end.process_ms - begin->process_ms) / device->facts.n_threads;

    return fmin(ms, fmax(thread_ms, mean_ms));
}

/* Computes bias and ReLU of the output of a layer, or their gradients, as the
 * executor does: the gradient of the bias is a product with ones. a has the
 * place of the bias, the ones or the outputs. */
static int relu(struct product_run *run, struct err *err)
{
    const uint32_t m = run->gemm.m, n = run->gemm.n;
    const bool is_gradient = run->form == PRODUCT_RELU_GRADIENT;
    const struct gemm bias = {.m = 1, .n = n, .k = m, .n_batch = 1};
    const struct elementwise job = {
        .kind = is_gradient ? ELEMENTWISE_RELU_GRADIENT : ELEMENTWISE_BIAS_RELU,
        .n_rows = m,
        .n_cols = n,
        .out = {run->d_c, n},
        .a = {run->d_a, is_gradient ? n : 0}};

    if (device_elementwise(run->device, &job, err))
        return -1;
    return is_gradient
               ? gemm_queue(run->blas, &bias, run->d_a, run->d_c, run->d_b, err)
               : 0;
}

static int compute(struct product_run *run, struct err *err)
{
    return run->form < PRODUCT_RELU
               ? gemm_queue(run->blas, &run->gemm, run->d_a, run->d_b, run->d_c,
                            err)
               : relu(run, err);
}

/* Computes the product n_runs times and stores the time of one. The second
 * warm-up sets n_runs for the repetitions after it. A GPU is delayed until the
 * products are queued. It is not held (device_hold), because cuBLAS may wait
 * for the GPU. */
static int run_once(void *ctx, unsigned number, double *ms, struct err *err)
{
    struct product_run *run = ctx;
    struct device *device = run->device;
    const struct processor_time begin = used_now();

    if (device_delay(device, err) || device_mark(device, 0, err))
        return -1;
    for (unsigned i = 0; i < run->n_runs; i++)
        if (compute(run, err))
            return -1;
    if (device_mark(device, 1, err) || device_elapsed(device, 0, 1, ms, err))
        return -1;
    if (device_is_host(device))
        *ms = computing_ms(device, &begin, *ms);
    *ms /= run->n_runs;
    if (number + 1 == N_WARM_UP)
        run->n_runs = (unsigned)fmin(
            fmax(ceil(LEAST_MS / fmax(*ms, LEAST_MS / MAX_RUNS)), 1), MAX_RUNS);
    return 0;
}

/* Measures a product with at least MIN_ITERATIONS repetitions. */
static int measure(struct product_sample *sample, struct product_run *run,
                   const struct product *product, struct err *err)
{
    struct repetitions repetitions = {
        run_once, run, 1, N_WARM_UP, MIN_ITERATIONS, MAX_ITERATIONS, NULL};
    struct repetition_conditions conditions;

    run->n_runs = 1;
    if (prepare(run, product, err) ||
        repetitions_time_quietly(&sample->timing, &repetitions, run->device,
                                 NULL, &conditions, err))
        return err_prefix(err, "product %s %s of %u x %u x %u",
                          dense_type_names[product->type],
                          product_form_names[product->form], product->m,
                          product->n, product->k);
    sample->product = *product;
    sample->n_iterations = repetitions.n;
    sample->flags = conditions.is_disturbed ? SAMPLE_THROTTLED : 0;
    return 0;
}

/* --- all of them --- */

/* Measures a product unless the sink has it. */
static int measure_missing(struct bench_result *result, struct product_run *run,
                           bool repeat, const struct product *product,
                           struct product_sink *sink, struct err *err)
{
    const struct sample_setting setting =
        device_setting(&run->device->facts, PRECISION_FP32, OPTIMIZER_SGD, 1);
    struct product_sample sample;

    if (!repeat && sink->has(sink->ctx, &setting, product)) {
        result->n_resumed++;
        return 0;
    }
    if (measure(&sample, run, product, err) ||
        sink->put(sink->ctx, &setting, &sample, err))
        return -1;
    result->n_measured++;
    result->n_flagged += sample.flags != 0;
    return 0;
}

int bench_products(struct bench_result *result, struct device *device,
                   const struct bench_options *options,
                   const struct product *products, size_t n,
                   struct product_sink *sink, struct err *err)
{
    const double begin_ms = clock_ms();
    struct product_run run = {.device = device};
    int rc = -1;

    *result = (struct bench_result){0};
    if (options->n_cases)
        n = (size_t)min_u64(n, options->n_cases);
    if (gemm_open(&run.blas, device, err))
        return -1;
    for (; result->n_cases < n; result->n_cases++) {
        result->interrupted = interrupt_requested();
        result->out_of_time = bench_is_late(options, begin_ms);
        if (result->interrupted || result->out_of_time)
            break;
        if (measure_missing(result, &run, options->repeat,
                            &products[result->n_cases], sink, err))
            goto out;
        progress_update(options->progress, result->n_cases + 1);
    }
    rc = 0;
out:
    device_free(device, run.region.d_ptr);
    gemm_close(run.blas);
    return rc;
}
