/* SPDX-License-Identifier: MIT */
/*
 * Measures matrix products of this CPU as `bench --dense grid` does, and
 * predicts from them the forward and backward passes of 40 MLPs whose products
 * take 1 ms or more each. The MLPs are drawn by the seeds 1 to 40 and executed
 * by the executor's dense_net. Every measured time is divided by that of a
 * fixed reference product right before and after it, which cancels other load
 * on the machine. Times are those of the processor. Prints a line for each MLP,
 * and the median error.
 *
 *     bench_products
 */
#include "tests/shipped_gpu.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/stats.h"
#include "costmodel/formulas/dense_cost.h"
#include "costmodel/learning/product_fit.h"
#include "exec/dense_net.h"
#include "io/store_rows.h"
#include "microbench/product_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N_MLPS 40
#define MOST_LAYERS 5
#define N_ROUNDS 5
/* Least operations of a product: 1 ms at 90 GFLOP/s, the peak of a core. The
 * products of the last layer, which has one output, reach 6 GFLOP/s. */
#define LEAST_OPERATIONS 90e6
#define LEAST_LAST_OPERATIONS 6e6
#define MOST_OPERATIONS 5e9 /* of the forward pass */

static struct arena arena;
static struct device *device;
static struct gemm_library *library;

static void must(int rc, const struct err *err)
{
    if (!rc)
        return;
    fprintf(stderr, "bench_products: %s\n", err->msg);
    exit(1);
}

/* --- the reference product --- */

#define REFERENCE_M 1024
#define REFERENCE_N 512
#define REFERENCE_K 512
static float *reference; /* [a, b and c] */
static double *reference_times;
static size_t n_reference_times;

/* Returns the time of the reference product in ms. */
static double time_reference(void)
{
    static const struct gemm gemm = {.transpose_b = true,
                                     .m = REFERENCE_M,
                                     .n = REFERENCE_N,
                                     .k = REFERENCE_K,
                                     .n_batch = 1};
    const float *b = reference + (size_t)REFERENCE_M * REFERENCE_K;
    float *c = reference + (size_t)REFERENCE_M * REFERENCE_K +
               (size_t)REFERENCE_N * REFERENCE_K;
    const double begin_ms = clock_thread_ms();

    gemm_host(&gemm, reference, b, c);
    return clock_thread_ms() - begin_ms;
}

static void open_reference(void)
{
    const size_t n = (size_t)REFERENCE_M * REFERENCE_K +
                     (size_t)REFERENCE_N * REFERENCE_K +
                     (size_t)REFERENCE_M * REFERENCE_N;

    reference = ARENA_NEW(&arena, float, n);
    for (size_t i = 0; i < n; i++)
        reference[i] = (float)(i % 101) / 101;
    reference_times = ARENA_NEW(&arena, double, PRODUCT_GRID_MAX);
    time_reference();
}

/* --- the grid --- */

/* Stores a product, and times the reference product between two of them. */
static int put(void *store, const struct sample_setting *setting,
               const struct product_sample *sample, struct err *err)
{
    reference_times[n_reference_times++] = time_reference();
    return store_put_product(store, setting, sample, err);
}

/* Measures the grid and returns its times, with the median of the reference
 * product in between. */
static struct product_times measure_grid(double *reference_ms)
{
    const struct sample_setting setting =
        device_setting(&device->facts, PRECISION_FP32, OPTIMIZER_SGD, 1);
    struct product *grid = ARENA_NEW(&arena, struct product, PRODUCT_GRID_MAX);
    const size_t n = product_grid(grid, true, device_free_bytes(device));
    const struct bench_options options = {0};
    const double begin_ms = clock_ms();
    struct product_sample *samples;
    struct product_times times;
    struct product_sink sink = {NULL, put, store_has_product};
    struct bench_result result;
    struct store *store;
    struct err err = {0};
    size_t n_samples;

    must(store_open_memory(&store, "grid", &err), &err);
    sink.ctx = store;
    must(bench_products(&result, device, &options, grid, n, &sink, &err), &err);
    must(store_products(store, &setting, &samples, &n_samples, &arena, &err),
         &err);
    store_close(store);
    product_fit(&times, samples, n_samples, false, &arena);
    *reference_ms = stats_median(reference_times, n_reference_times);
    printf("grid: %zu products in %.0f s, others predicted to %.1f %% in the "
           "median, %.1f %% in nine of ten\n",
           times.n, (clock_ms() - begin_ms) / 1e3,
           100 * times.median_error_frac, 100 * times.error_frac);
    return times;
}

/* --- the MLPs --- */

struct mlp_case {
    uint32_t n_samples, n_layers, width[MOST_LAYERS + 1];
};

/* Draws a number from least to most, evenly over the magnitudes. Half of the
 * numbers are multiples of 32. */
static uint32_t draw(struct rng *rng, double least, double most)
{
    const double x = least * pow(most / least, rng_uniform(rng));

    return (uint32_t)(rng_below(rng, 2) ? 32 * ceil(x / 32) : x);
}

static bool is_usable(const struct mlp_case *mlp)
{
    double sum = 0;

    for (uint32_t i = 0; i < mlp->n_layers; i++) {
        const double operations =
            2.0 * mlp->n_samples * mlp->width[i] * mlp->width[i + 1];

        if (operations <
            (i + 1 < mlp->n_layers ? LEAST_OPERATIONS : LEAST_LAST_OPERATIONS))
            return false;
        sum += operations;
    }
    return sum <= MOST_OPERATIONS;
}

static struct mlp_case draw_mlp(uint64_t seed)
{
    struct mlp_case mlp;
    struct rng rng;

    rng_init(&rng, seed, 46);
    do {
        mlp.n_samples = draw(&rng, 128, 8192);
        mlp.n_layers = 2 + (uint32_t)rng_below(&rng, MOST_LAYERS - 1);
        for (uint32_t i = 0; i < mlp.n_layers; i++)
            mlp.width[i] = draw(&rng, 32, 3000);
        mlp.width[mlp.n_layers] = 1;
    } while (!is_usable(&mlp));
    return mlp;
}

/* Returns the dense part of an MLP: bottom layers, and the last one on top. */
static const struct dense *dense_of(const struct mlp_case *mlp)
{
    struct buf text = {0};
    const struct dense *dense = NULL;
    struct err err = {0};

    for (uint32_t i = 0; i < mlp->n_layers; i++)
        buf_printf(&text, "%s%u", i ? "-" : "bottom:", mlp->width[i]);
    buf_printf(&text, ";interaction:cat;top:%u", mlp->width[mlp->n_layers]);
    must(dense_read(&dense, text.data, text.len, NULL, 0, &arena, &err), &err);
    buf_release(&text);
    return dense;
}

static void compute_none(const struct oracle *oracle, const double *sums,
                         size_t n, double *compute_ms)
{
    (void)oracle;
    (void)sums;
    for (size_t i = 0; i < n; i++)
        compute_ms[i] = 0;
}

/* Predicts forward and backward in ms. */
static double predict(const struct dense *dense, uint32_t n_samples,
                      const struct product_times *times)
{
    static const struct oracle_ops ops = {.compute = compute_none};
    const struct gpu_spec *spec = shipped_gpu("cpu", &arena);
    const struct problem problem = {
        .cluster = {.n_devices = 1, .devices_per_host = 1},
        .batch = n_samples,
        .job.dense = dense,
        .dense_optimizer = DENSE_SGD};
    struct comm_oracle oracle = {
        .base = {.problem = &problem, .width = COMM_LANES, .floor_lane = -1},
        .comm = gpu_spec_comm(spec, &problem.cluster)};
    struct err err = {0};

    comm_oracle_init(&oracle, &ops);
    must(dense_cost_add(&oracle, spec, times, &err), &err);
    return oracle.dense.forward_ms + oracle.dense.backward_ms;
}

/* Executes forward and backward in turns with the reference product. Returns
 * their time as a multiple of that of the reference product: the median of
 * N_ROUNDS ratios. *ms: median time. */
static double execute(const struct dense *dense, uint32_t n_samples, double *ms)
{
    double ratios[N_ROUNDS], times[N_ROUNDS], before_ms;
    const size_t n_inputs = (size_t)n_samples * dense->bottom.width[0];
    const size_t n_labels = (size_t)n_samples * dense_n_outputs(dense);
    struct dense_net net = {0};
    struct err err = {0};

    must(dense_net_open(&net, dense, n_samples, OPTIMIZER_SGD, 0.01F, device,
                        library, &err) ||
             device_fill(device, net.d_parameters, dense->n_parameters,
                         PRECISION_FP32, 1, &err) ||
             device_fill(device, net.d_features, n_inputs, PRECISION_FP32, 2,
                         &err) ||
             device_set(device, net.d_labels, n_labels, 1, &err),
         &err);
    must(dense_net_forward(&net, &err) ||
             dense_net_backward(&net, n_samples, &err),
         &err);
    before_ms = time_reference();
    for (unsigned i = 0; i < N_ROUNDS; i++) {
        const double begin_ms = clock_thread_ms();
        double after_ms;

        must(dense_net_forward(&net, &err) ||
                 dense_net_backward(&net, n_samples, &err),
             &err);
        times[i] = clock_thread_ms() - begin_ms;
        after_ms = time_reference();
        ratios[i] = times[i] / ((before_ms + after_ms) / 2);
        before_ms = after_ms;
    }
    dense_net_close(&net);
    *ms = stats_median(times, N_ROUNDS);
    return stats_median(ratios, N_ROUNDS);
}

int main(void)
{
    double errors[N_MLPS], signed_sum = 0, reference_ms;
    struct product_times times;
    struct err err = {0};

    must(device_open(&device, DEVICE_CPU, 0, 1, &err) ||
             gemm_open(&library, device, &err),
         &err);
    open_reference();
    setvbuf(stdout, NULL, _IOLBF, 0);
    times = measure_grid(&reference_ms);
    printf("%4s %8s %-24s %10s %10s %7s\n", "seed", "samples", "widths",
           "measured", "predicted", "error");
    for (uint64_t seed = 1; seed <= N_MLPS; seed++) {
        const struct mlp_case mlp = draw_mlp(seed);
        const struct dense *dense = dense_of(&mlp);
        const double predicted = predict(dense, mlp.n_samples, &times);
        char widths[80];
        int len = 0;
        double ms;
        const double error =
            predicted / reference_ms / execute(dense, mlp.n_samples, &ms) - 1;

        for (uint32_t i = 0; i <= mlp.n_layers; i++)
            len += snprintf(widths + len, sizeof widths - (size_t)len, "%s%u",
                            i ? "-" : "", mlp.width[i]);
        errors[seed - 1] = fabs(error);
        signed_sum += error;
        printf("%4u %8u %-24s %7.1f ms %7.1f ms %+6.1f %%\n", (unsigned)seed,
               mlp.n_samples, widths, ms, predicted, 100 * error);
    }
    printf("error relative to the reference product of %.2f ms: mean %+.1f %%",
           reference_ms, 100 * signed_sum / N_MLPS);
    printf(", nine of ten within %.1f %%",
           100 * stats_quantile(errors, N_MLPS, 0.9));
    printf(", median %.1f %%\n", 100 * stats_median(errors, N_MLPS));
    gemm_close(library);
    device_close(device);
    arena_release(&arena);
    return 0;
}
