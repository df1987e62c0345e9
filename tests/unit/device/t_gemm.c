/* SPDX-License-Identifier: MIT */
#include "device/gemm.h"

#include "base/parallel.h"
#include "base/rng.h"
#include "device/gemm_buffers.h"
#include "tests/rng_normal.h"
#include "tests/tap.h"
#include "tests/unit/device/devices.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

/* Products of random shapes on all devices, compared with sums in double
 * precision. */

#define N_SHAPES 60
#define MOST 40u /* rows or columns */

/* Rounds to bf16, and returns the upper half of the bits. */
static uint16_t to_bf16(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The matrices of a batch, in host memory. */
struct batch {
    struct gemm gemm;
    size_t n_a, n_b, n_c; /* number of elements with all gaps */
    float *a, *b, *c, *want;
};

static size_t count(uint64_t stride, uint32_t n_batch, size_t n)
{
    return (size_t)(stride * (n_batch - 1)) + n;
}

static float *draw(struct rng *rng, size_t n, bool is_bf16)
{
    float *values = mem_alloc(n, sizeof *values);

    for (size_t i = 0; i < n; i++) {
        values[i] = (float)rng_normal(rng);
        if (is_bf16)
            values[i] = from_bf16(to_bf16(values[i]));
    }
    return values;
}

/* Computes the batch in double precision. */
static void multiply(struct batch *batch)
{
    const struct gemm *gemm = &batch->gemm;

    for (uint32_t p = 0; p < gemm->n_batch; p++) {
        const float *a = batch->a + p * gemm->stride_a;
        const float *b = batch->b + p * gemm->stride_b;
        float *c = batch->want + p * gemm->stride_c;

        for (uint32_t i = 0; i < gemm->m; i++)
            for (uint32_t j = 0; j < gemm->n; j++) {
                float *out = &c[i * gemm->n + j];
                double sum = gemm->adds ? (double)*out : 0;

                for (uint32_t l = 0; l < gemm->k; l++)
                    sum += (double)a[gemm->transpose_a ? l * gemm->m + i
                                                       : i * gemm->k + l] *
                           (double)b[gemm->transpose_b ? j * gemm->k + l
                                                       : l * gemm->n + j];
                *out = (float)sum;
            }
    }
}

/* Draws the elements and the strides of a batch of known shape. If the batch
 * does not add, its c holds NANs, which must not be read. Elements between two
 * results are 7 and must stay. */
static void batch_fill(struct batch *batch, struct rng *rng)
{
    struct gemm *gemm = &batch->gemm;
    const bool is_bf16 = gemm->math == GEMM_BF16;

    if (rng_below(rng, 4))
        gemm->stride_a = gemm->m * gemm->k + rng_below(rng, 5);
    gemm->stride_b = gemm->k * gemm->n + rng_below(rng, 5);
    gemm->stride_c = gemm->m * gemm->n + rng_below(rng, 5);
    batch->n_a = count(gemm->stride_a, gemm->n_batch, gemm->m * gemm->k);
    batch->n_b = count(gemm->stride_b, gemm->n_batch, gemm->k * gemm->n);
    batch->n_c = count(gemm->stride_c, gemm->n_batch, gemm->m * gemm->n);
    batch->a = draw(rng, batch->n_a, is_bf16);
    batch->b = draw(rng, batch->n_b, is_bf16);
    batch->c = draw(rng, batch->n_c, false);
    batch->want = mem_alloc(batch->n_c, sizeof *batch->want);
    for (size_t i = 0; i < batch->n_c; i++) {
        if (i % gemm->stride_c >= (size_t)gemm->m * gemm->n)
            batch->c[i] = 7;
        else if (!gemm->adds)
            batch->c[i] = NAN;
    }
    memcpy(batch->want, batch->c, batch->n_c * sizeof *batch->c);
    multiply(batch);
}

/* Draws a batch of random shape. */
static void batch_init(struct batch *batch, struct rng *rng,
                       enum gemm_math math)
{
    batch->gemm = (struct gemm){.transpose_a = rng_below(rng, 2),
                                .transpose_b = rng_below(rng, 2),
                                .m = 1 + (uint32_t)rng_below(rng, MOST),
                                .n = 1 + (uint32_t)rng_below(rng, MOST),
                                .k = 1 + (uint32_t)rng_below(rng, MOST),
                                .n_batch = 1 + (uint32_t)rng_below(rng, 3),
                                .adds = rng_below(rng, 2),
                                .math = math};
    batch_fill(batch, rng);
}

static void batch_release(struct batch *batch)
{
    mem_free(batch->a);
    mem_free(batch->b);
    mem_free(batch->c);
    mem_free(batch->want);
}

/* Returns a copy of values in device memory, as bf16 if asked for. */
static void *upload(struct device *device, const float *values, size_t n,
                    bool is_bf16)
{
    void *d_copy = test_device_alloc(device, n * sizeof *values);
    uint16_t *halves = mem_alloc(n, sizeof *halves);
    struct err err = {0};

    for (size_t i = 0; i < n; i++)
        halves[i] = to_bf16(values[i]);
    if (device_upload(device, d_copy, is_bf16 ? (const void *)halves : values,
                      n * (is_bf16 ? sizeof *halves : sizeof *values), &err))
        ok(0, "upload: %s", err.msg);
    mem_free(halves);
    return d_copy;
}

/* Computes a batch on the device. Returns the worst error, relative to 1 plus
 * the result. */
static double run(struct gemm_library *library, struct device *device,
                  const struct batch *batch)
{
    const bool is_bf16 = batch->gemm.math == GEMM_BF16;
    void *d_a = upload(device, batch->a, batch->n_a, is_bf16);
    void *d_b = upload(device, batch->b, batch->n_b, is_bf16);
    void *d_c = upload(device, batch->c, batch->n_c, false);
    struct err err = {0};
    double worst = 0;
    float *got;

    if (gemm_queue(library, &batch->gemm, d_a, d_b, d_c, &err))
        ok(0, "%s", err.msg);
    got = test_device_copy(device, d_c, batch->n_c * sizeof *got);
    for (size_t i = 0; i < batch->n_c; i++)
        worst = tap_worst(worst, fabs((double)(got[i] - batch->want[i])) /
                                     (1 + fabs((double)batch->want[i])));
    mem_free(got);
    device_free(device, d_a);
    device_free(device, d_b);
    device_free(device, d_c);
    return worst;
}

static void test_math(struct gemm_library *library, struct device *device,
                      enum gemm_math math, double most, const char *name)
{
    struct rng rng;
    double worst = 0;

    rng_init(&rng, 46, math);
    for (int i = 0; i < N_SHAPES; i++) {
        struct batch batch;

        batch_init(&batch, &rng, math);
        worst = tap_worst(worst, run(library, device, &batch));
        batch_release(&batch);
    }
    ok(worst < most, "%s: off by %.1e", name, worst);
}

/* Products that are large enough for the threads of a CPU to share them: along
 * the rows, along the columns, and between the products of a batch. */
static void test_shared(struct gemm_library *library, struct device *device)
{
    static const struct gemm shared[] = {
        {.m = 515, .n = 33, .k = 67, .n_batch = 1, .transpose_b = true},
        {.m = 7, .n = 1031, .k = 80, .n_batch = 2, .adds = true},
        {.m = 100, .n = 90, .k = 151, .n_batch = 1, .transpose_a = true},
        {.m = 27, .n = 27, .k = 128, .n_batch = 40, .transpose_b = true},
    };
    struct rng rng;

    rng_init(&rng, 46, 9);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        struct batch batch = {.gemm = shared[i]};
        double worst;

        batch_fill(&batch, &rng);
        worst = run(library, device, &batch);
        ok(worst < 1e-5, "shared product %zu: off by %.1e", i, worst);
        batch_release(&batch);
    }
}

/* --- the products of an MLP --- */

#define N_LAYERS 3
#define N_SAMPLES 50u
static const uint32_t widths[N_LAYERS + 1] = {13, 40, 21, 3};

/* Multiplies on the device. The matrices are in host memory. */
static void product(struct gemm_library *library, struct device *device,
                    struct gemm gemm, const float *a, const float *b, float *c)
{
    void *d_a = upload(device, a, (size_t)gemm.m * gemm.k, false);
    void *d_b = upload(device, b, (size_t)gemm.k * gemm.n, false);
    void *d_c = test_device_alloc(device, sizeof *c * gemm.m * gemm.n);
    struct err err = {0};

    gemm.n_batch = 1;
    if (gemm_queue(library, &gemm, d_a, d_b, d_c, &err) ||
        device_download(device, c, d_c, sizeof *c * gemm.m * gemm.n, &err))
        ok(0, "%s", err.msg);
    device_free(device, d_a);
    device_free(device, d_b);
    device_free(device, d_c);
}

/* Values and gradients of an MLP with a ReLU behind each layer but the last.
 * The gradient of its outputs is 1. */
struct mlp_values {
    double value[N_LAYERS + 1][N_SAMPLES * 40];
    double gradient[N_LAYERS + 1][N_SAMPLES * 40];
    double weight[N_LAYERS][40 * 40], weight_gradient[N_LAYERS][40 * 40];
};

/* Computes the MLP in double precision. */
static void mlp_reference(struct mlp_values *mlp)
{
    for (uint32_t l = 0; l < N_LAYERS; l++)
        for (uint32_t s = 0; s < N_SAMPLES; s++)
            for (uint32_t o = 0; o < widths[l + 1]; o++) {
                double sum = 0;

                for (uint32_t i = 0; i < widths[l]; i++)
                    sum += mlp->value[l][s * widths[l] + i] *
                           mlp->weight[l][o * widths[l] + i];
                mlp->value[l + 1][s * widths[l + 1] + o] =
                    l + 1 < N_LAYERS && sum < 0 ? 0 : sum;
            }
    for (uint32_t i = 0; i < N_SAMPLES * widths[N_LAYERS]; i++)
        mlp->gradient[N_LAYERS][i] = 1;
    for (uint32_t l = N_LAYERS; l-- > 0;)
        for (uint32_t s = 0; s < N_SAMPLES; s++)
            for (uint32_t o = 0; o < widths[l + 1]; o++) {
                const double given =
                    mlp->gradient[l + 1][s * widths[l + 1] + o];

                for (uint32_t i = 0; i < widths[l]; i++) {
                    const uint32_t in = s * widths[l] + i;

                    mlp->weight_gradient[l][o * widths[l] + i] +=
                        given * mlp->value[l][in];
                    if (!l || mlp->value[l][in] > 0)
                        mlp->gradient[l][in] +=
                            given * mlp->weight[l][o * widths[l] + i];
                }
            }
}

/* Returns the worst error of got[n], relative to 1 plus the value. */
static double error_of(const float *got, const double *want, size_t n)
{
    double worst = 0;

    for (size_t i = 0; i < n; i++)
        worst = tap_worst(worst,
                          fabs((double)got[i] - want[i]) / (1 + fabs(want[i])));
    return worst;
}

/* Computes forward and backward of an MLP on the device, and compares all
 * values and gradients. */
static void test_mlp(struct gemm_library *library, struct device *device)
{
    struct mlp_values *want = mem_alloc(1, sizeof *want);
    float value[N_LAYERS + 1][N_SAMPLES * 40];
    float weight[N_LAYERS][40 * 40], gradient[N_SAMPLES * 40];
    float below[N_SAMPLES * 40], weight_gradient[40 * 40];
    double worst = 0;
    struct rng rng;

    rng_init(&rng, 46, 10);
    for (uint32_t l = 0; l < N_LAYERS; l++)
        for (uint32_t i = 0; i < widths[l + 1] * widths[l]; i++)
            want->weight[l][i] =
                (double)(weight[l][i] = (float)rng_normal(&rng) / 4);
    for (uint32_t i = 0; i < N_SAMPLES * widths[0]; i++)
        want->value[0][i] = (double)(value[0][i] = (float)rng_normal(&rng));
    mlp_reference(want);
    for (uint32_t l = 0; l < N_LAYERS; l++) {
        const uint32_t n = N_SAMPLES * widths[l + 1];

        product(library, device,
                (struct gemm){.transpose_b = true,
                              .m = N_SAMPLES,
                              .n = widths[l + 1],
                              .k = widths[l]},
                value[l], weight[l], value[l + 1]);
        for (uint32_t i = 0; l + 1 < N_LAYERS && i < n; i++)
            value[l + 1][i] = value[l + 1][i] > 0 ? value[l + 1][i] : 0;
        worst = tap_worst(worst, error_of(value[l + 1], want->value[l + 1], n));
    }
    for (uint32_t i = 0; i < N_SAMPLES * widths[N_LAYERS]; i++)
        gradient[i] = 1;
    for (uint32_t l = N_LAYERS; l-- > 0;) {
        const uint32_t n = N_SAMPLES * widths[l];

        product(library, device,
                (struct gemm){.transpose_a = true,
                              .m = widths[l + 1],
                              .n = widths[l],
                              .k = N_SAMPLES},
                gradient, value[l], weight_gradient);
        product(
            library, device,
            (struct gemm){.m = N_SAMPLES, .n = widths[l], .k = widths[l + 1]},
            gradient, weight[l], below);
        for (uint32_t i = 0; i < n; i++)
            gradient[i] = !l || value[l][i] > 0 ? below[i] : 0;
        worst = tap_worst(worst, error_of(gradient, want->gradient[l], n));
        worst =
            tap_worst(worst, error_of(weight_gradient, want->weight_gradient[l],
                                      widths[l + 1] * widths[l]));
    }
    ok(worst < 1e-5, "forward and backward of an MLP: off by %.1e", worst);
    mem_free(want);
}

/* A CPU has fp32 only. */
static void test_refused(struct gemm_library *library)
{
    const struct gemm gemm = {
        .m = 1, .n = 1, .k = 1, .n_batch = 1, .math = GEMM_TF32};
    struct err err = {0};

    ok(gemm_queue(library, &gemm, NULL, NULL, NULL, &err) &&
           err.code == ERR_DEVICE,
       "%s", err.msg);
}

static void test_device(const struct test_device *which)
{
    struct device *device = test_device_open(which);
    struct gemm_library *library = NULL;
    struct err err = {0};

    if (!device)
        return;
    if (gemm_open(&library, device, &err)) {
        tap_skip(which->name, err.msg);
        device_close(device);
        return;
    }
    test_math(library, device, GEMM_FP32, 1e-5, "fp32");
    test_mlp(library, device);
    if (device_is_host(device)) {
        test_shared(library, device);
        test_refused(library);
    } else {
        test_math(library, device, GEMM_TF32, 1e-2, "tf32");
        test_math(library, device, GEMM_BF16, 1e-5, "bf16");
    }
    gemm_close(library);
    device_close(device);
}

#define N_THREADS 4u
#define N_PRODUCTS 64u

static void multiply_one(void *ctx, size_t i, unsigned thread)
{
    const struct batch *batch = ctx;

    (void)thread;
    gemm_host(&batch->gemm, batch->a, batch->b, batch->c + i * batch->n_c);
}

/* Threads that compute products at the same time get the bits of one thread. */
static void test_threads(void)
{
    struct batch batch = {.gemm = {.m = 200, .n = 32, .k = 128, .n_batch = 1},
                          .n_a = 200 * 128,
                          .n_b = 128 * 32,
                          .n_c = 200 * 32};
    unsigned n_threads = N_THREADS, n_wrong = 0;
    struct pool *pool = pool_open(N_THREADS);
    struct rng rng;
    struct err err = {0};

    ok(!gemm_reserve(&n_threads, &err) && n_threads >= 1 &&
           n_threads <= N_THREADS,
       "%u threads may compute products%s", n_threads, err.msg);
    rng_init(&rng, 5, 0);
    batch.a = draw(&rng, batch.n_a, false);
    batch.b = draw(&rng, batch.n_b, false);
    batch.c = mem_alloc(N_PRODUCTS * batch.n_c, sizeof(float));
    multiply_one(&batch, 0, 0);
    pool_run(n_threads > 1 ? pool : NULL, N_PRODUCTS, multiply_one, &batch);
    for (size_t i = 1; i < N_PRODUCTS; i++)
        n_wrong += memcmp(batch.c, batch.c + i * batch.n_c,
                          batch.n_c * sizeof(float)) != 0;
    is_i64(n_wrong, 0, "products that differ from the first");
    mem_free(batch.a);
    mem_free(batch.b);
    mem_free(batch.c);
    pool_close(pool);
}

int main(int argc, char **argv)
{
    char path[1024];

    (void)argc;
    gemm_close(NULL);
    /* The emulated GPU has a stand-in for cuBLAS. Once it is loaded, the loader
     * finds it by its name. A real GPU needs the real library. */
    if (dlsym(RTLD_DEFAULT, "cudaMemcpy")) {
        snprintf(path, sizeof path, "%.*s/../../../fake/libcublas.so.13",
                 (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
        ok(!!dlopen(path, RTLD_NOW | RTLD_LOCAL), "the stand-in of cuBLAS");
    }
    for (size_t i = 0; i < N_TEST_DEVICES; i++)
        test_device(&TEST_DEVICES[i]);
    test_threads();
    return tap_done();
}
