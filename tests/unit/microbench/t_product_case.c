/* SPDX-License-Identifier: MIT */
#include "microbench/product_case.h"
#include "tests/tap.h"

#include "base/mem.h"

#include <string.h>

#define GIB ((uint64_t)1 << 30)

struct kept {
    struct product_sample samples[64];
    size_t n;
};

static int keep(void *ctx, const struct sample_setting *setting,
                const struct product_sample *sample, struct err *err)
{
    struct kept *kept = ctx;

    if (kept->n == 64 || !setting->device)
        return err_set(err, ERR_IO, "unexpected");
    kept->samples[kept->n++] = *sample;
    return 0;
}

static bool is_kept(void *ctx, const struct sample_setting *setting,
                    const struct product *product)
{
    const struct kept *kept = ctx;

    (void)setting;
    for (size_t i = 0; i < kept->n; i++)
        if (product_is_same(&kept->samples[i].product, product))
            return true;
    return false;
}

/* Tests that a grid has each shape once, within its limits, and that its first
 * tenth has all types and forms, and products of few and of many samples. */
static void test_grid(bool is_host, uint64_t max_bytes, double max_operations,
                      size_t n_at_least)
{
    struct product *products = mem_alloc(PRODUCT_GRID_MAX, sizeof *products);
    const size_t n = product_grid(products, is_host, max_bytes);
    unsigned types = 0, forms = 0, n_pairs = 0;
    double least = 1e30, most = 0;
    int n_bad = 0;

    ok(n >= n_at_least && n <= PRODUCT_GRID_MAX, "%zu products", n);
    for (size_t i = 0; i < n; i++) {
        const double operations = product_operations(&products[i]);

        n_bad += operations > max_operations ||
                 product_bytes(&products[i]) > (double)max_bytes;
        for (size_t j = 0; j < i; j++)
            n_bad += product_is_same(&products[i], &products[j]);
        if (i >= n / 10)
            continue;
        types |= 1u << products[i].type;
        forms |= 1u << products[i].form;
        n_pairs += products[i].n_batch > 1;
        least = operations < least ? operations : least;
        most = operations > most ? operations : most;
    }
    is_i64(n_bad, 0, "each once, none too large");
    is_i64(types,
           is_host ? 1 << DENSE_TYPE_FP32
                   : 1 << DENSE_TYPE_FP32 | 1 << DENSE_TYPE_TF32 |
                         1 << DENSE_TYPE_BF16,
           "types at the start of the list");
    is_i64(forms, 31, "forms at the start of the list");
    ok(n_pairs > 0 && most / least > 1e3, "sizes at the start of the list");
    mem_free(products);
}

static void run_ok(struct bench_result *result, struct device *device,
                   const struct bench_options *options,
                   const struct product *products, size_t n, struct kept *kept)
{
    struct product_sink sink = {kept, keep, is_kept};
    struct err err = {0};

    if (bench_products(result, device, options, products, n, &sink, &err))
        ok(0, "products: %s", err.msg);
}

static const struct product few[] = {
    {DENSE_TYPE_FP32, PRODUCT_NT, 64, 32, 16, 1},
    {DENSE_TYPE_FP32, PRODUCT_TN, 32, 16, 64, 1},
    {DENSE_TYPE_FP32, PRODUCT_NN, 9, 16, 9, 64},
    {DENSE_TYPE_FP32, PRODUCT_RELU, 16, 9, 1, 1},
    {DENSE_TYPE_FP32, PRODUCT_RELU_GRADIENT, 16, 9, 1, 1},
};

#define N_FEW (sizeof few / sizeof *few)

static void test_run(struct device *device)
{
    struct kept *kept = mem_alloc(1, sizeof *kept);
    struct bench_options options = {.n_cases = 2};
    struct bench_result result;
    int n_bad = 0;

    run_ok(&result, device, &options, few, N_FEW, kept);
    ok(result.n_measured == 2 && result.n_cases == 2 && kept->n == 2,
       "as many as asked for");
    options.n_cases = 0;
    run_ok(&result, device, &options, few, N_FEW, kept);
    ok(result.n_measured == N_FEW - 2 && result.n_resumed == 2 &&
           result.n_cases == N_FEW,
       "the missing ones");
    for (size_t i = 0; i < kept->n; i++) {
        const struct product_sample *sample = &kept->samples[i];

        n_bad += !product_is_same(&sample->product, &few[i]) ||
                 !(sample->timing.p10_ms > 0 &&
                   sample->timing.p10_ms <= sample->timing.median_ms &&
                   sample->timing.median_ms <= sample->timing.p90_ms &&
                   sample->n_iterations >= 5);
    }
    is_i64(n_bad, 0, "all have a time");
    options.repeat = true;
    run_ok(&result, device, &options, few, N_FEW, kept);
    ok(result.n_measured == N_FEW && kept->n == 2 * N_FEW, "again");
    options.time_limit_s = 1e-9;
    run_ok(&result, device, &options, few, N_FEW, kept);
    ok(result.out_of_time && kept->n == 2 * N_FEW, "the time limit ends it");
    mem_free(kept);
}

static void test_refused(struct device *device)
{
    struct product product = {DENSE_TYPE_BF16, PRODUCT_NN, 1, 1, 1, 1};
    const struct bench_options options = {.repeat = true};
    struct bench_result result;
    struct product_sink sink = {0};
    struct err err = {0};

    ok(bench_products(&result, device, &options, &product, 1, &sink, &err) &&
           strstr(err.msg, "fp32 only"),
       "%s", err.msg);
    product.type = DENSE_TYPE_FP16;
    ok(bench_products(&result, device, &options, &product, 1, &sink, &err) &&
           strstr(err.msg, "not measured"),
       "%s", err.msg);
}

int main(void)
{
    struct device *device;
    struct err err = {0};

    test_grid(true, 4 * GIB, 2.2e9, 480);
    test_grid(true, GIB / 8, 2.2e9, 400);
    test_grid(false, 64 * GIB, 1e12, 1800);
    if (device_open(&device, DEVICE_CPU, 0, 2, &err)) {
        ok(0, "device: %s", err.msg);
        return tap_done();
    }
    test_run(device);
    test_refused(device);
    device_close(device);
    return tap_done();
}
