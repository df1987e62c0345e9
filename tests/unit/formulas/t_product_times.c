/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/product_times.h"

#include "base/rng.h"
#include "tests/tap.h"

#include <math.h>

#define MOST 512

static struct product_time items[MOST];
static struct product_times times = {.items = items};

/* Time of a made-up device: 10 us, 50 GFLOP/s for many rows and columns and
 * fewer for few, and 10 GB/s. */
static double true_ms(const struct product *product)
{
    const double m = product->m, n = product->n, k = product->k;
    const double rate = 50e6 * m / (m + 20) * n / (n + 20) * k / (k + 10);

    return 0.01 + product_operations(product) / rate +
           product_bytes(product) / 10e6;
}

static void add(struct product product)
{
    items[times.n++] = (struct product_time){product, true_ms(&product)};
}

/* Measures a grid of single products in all forms. */
static void fill_grid(enum dense_type type)
{
    times.n = 0;
    for (int form = 0; form < PRODUCT_RELU; form++)
        for (uint32_t m = 16; m <= 4096; m *= 4)
            for (uint32_t n = 16; n <= 4096; n *= 4)
                for (uint32_t k = 16; k <= 4096; k *= 4)
                    add((struct product){type, (enum product_form)form, m, n, k,
                                         1});
}

/* Products between the points of the grid. */
static void test_between(void)
{
    double worst = 0, sum = 0;
    struct rng rng;

    fill_grid(DENSE_TYPE_FP32);
    rng_init(&rng, 46, 0);
    for (int i = 0; i < 100; i++) {
        const struct product product = {
            DENSE_TYPE_FP32,
            (enum product_form)rng_below(&rng, PRODUCT_RELU),
            (uint32_t)(16 * exp2(8 * rng_uniform(&rng))),
            (uint32_t)(16 * exp2(8 * rng_uniform(&rng))),
            (uint32_t)(16 * exp2(8 * rng_uniform(&rng))),
            1};
        const double error =
            fabs(product_times_ms(&times, &product) / true_ms(&product) - 1);

        worst = tap_worst(worst, error);
        sum += error;
    }
    ok(worst < 0.3 && sum / 100 < 0.08, "mean error %.3f, worst %.3f",
       sum / 100, worst);
}

static void test_known(void)
{
    struct product product = {DENSE_TYPE_FP32, PRODUCT_NT, 64, 256, 16, 1};
    const struct product first = items[0].product;

    fill_grid(DENSE_TYPE_FP32);
    is_near(product_times_ms(&times, &product), true_ms(&product), 0,
            "a measured product has its time");
    items[0].ms *= 3;
    is_near(product_times_ms(&times, &first), items[0].ms, 0,
            "also if others tell another one");
    ok(product_times_without(&times, 0) < items[0].ms / 2,
       "it is predicted from the others");
    product.type = DENSE_TYPE_BF16;
    ok(isnan(product_times_ms(&times, &product)), "another type is unknown");
    fill_grid(DENSE_TYPE_BF16);
    product.type = DENSE_TYPE_FP16;
    is_near(product_times_ms(&times, &product), true_ms(&product), 0,
            "fp16 takes the time of bf16");
}

/* Far from all measured products the ratio to the law stays in its range. */
static void test_far(void)
{
    const struct product far = {DENSE_TYPE_FP32, PRODUCT_TN, 65536,
                                65536,           65536,      1};
    double ms;

    fill_grid(DENSE_TYPE_FP32);
    ms = product_times_ms(&times, &far);
    ok(ms > true_ms(&far) / 1.5 && ms < 1.5 * true_ms(&far),
       "far away: %.0f, in truth %.0f", ms, true_ms(&far));
}

static void test_have(void)
{
    times.n = 0;
    ok(!product_times_have(&times, DENSE_TYPE_FP32), "nothing is measured");
    for (uint32_t i = 1; i <= PRODUCT_TIMES_LEAST; i++) {
        add((struct product){DENSE_TYPE_FP32, PRODUCT_NN, 8 * i, 8, 8, 1});
        add((struct product){DENSE_TYPE_FP32, PRODUCT_NT, 8 * i, 8, 8, 1});
        ok(!product_times_have(&times, DENSE_TYPE_FP32), "too few");
        add((struct product){DENSE_TYPE_FP32, PRODUCT_TN, 8 * i, 8, 8, 1});
    }
    ok(product_times_have(&times, DENSE_TYPE_FP32), "three of each form");
    ok(!product_times_have(&times, DENSE_TYPE_TF32) &&
           !product_times_have_batches(&times, DENSE_TYPE_FP32),
       "of this type, and no batches");
    for (uint32_t i = 1; i <= PRODUCT_TIMES_LEAST; i++) {
        ok(!product_times_have_batches(&times, DENSE_TYPE_FP32), "too few");
        add((struct product){DENSE_TYPE_FP32, PRODUCT_NN, 8, 8, 8, 2 * i});
        add((struct product){DENSE_TYPE_FP32, PRODUCT_NT, 8, 8, 8, 2 * i});
    }
    ok(product_times_have_batches(&times, DENSE_TYPE_FP32), "three batches");
    for (uint32_t i = 1; i <= PRODUCT_TIMES_LEAST; i++) {
        ok(!product_times_have_elements(&times), "no operations on elements");
        add(dense_relu(PRODUCT_RELU, 8, i));
        add(dense_relu(PRODUCT_RELU_GRADIENT, 8, i));
    }
    ok(product_times_have_elements(&times), "three operations on elements");
}

int main(void)
{
    test_between();
    test_known();
    test_far();
    test_have();
    return tap_done();
}
