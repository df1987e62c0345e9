/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/product_fit.h"

#include "tests/tap.h"

#define N 48

static struct product_sample samples[N];

/* Products of a device that takes a time in proportion to the operations. The
 * last one takes three times as long, and is disturbed. */
static void fill(void)
{
    size_t i = 0;

    for (uint32_t m = 64; m <= 512; m *= 2)
        for (uint32_t n = 64; n <= 256; n *= 2)
            for (uint32_t k = 64; k <= 512; k *= 2, i++) {
                struct product_sample *sample = &samples[i];

                *sample = (struct product_sample){
                    .product = {DENSE_TYPE_FP32, PRODUCT_NN, m, n, k, 1}};
                sample->timing.median_ms =
                    product_operations(&sample->product) / 3e7;
            }
    samples[N - 1].timing.median_ms *= 3;
    samples[N - 1].flags = SAMPLE_THROTTLED;
}

int main(void)
{
    struct product_times times;
    struct arena arena = {0};

    fill();
    is_i64((int64_t)product_fit(&times, samples, N, false, &arena), 1,
           "a disturbed product is left out");
    is_i64((int64_t)times.n, N - 1, "the others are used");
    ok(times.error_frac < 0.1 && times.median_error_frac < 0.05 &&
           times.median_error_frac > 0,
       "errors %.3f, in the median %.3f", times.error_frac,
       times.median_error_frac);
    is_near(times.items[0].ms, 0.017476, 1e-12, "times have five digits");
    is_i64((int64_t)product_fit(&times, samples, N, true, &arena), 0,
           "all are used if asked for");
    is_i64((int64_t)times.n, N, "also the disturbed one");
    samples[0].timing.median_ms = 1e9;
    samples[1].timing.median_ms = 0;
    is_i64((int64_t)product_fit(&times, samples, 2, true, &arena), 1,
           "a product without a time is left out");
    ok(times.n == 1 && times.error_frac == 0, "one has no error");
    samples[1].timing.median_ms = 1e-9;
    product_fit(&times, samples, 2, true, &arena);
    is_near(times.error_frac, PRODUCT_TIMES_MAX_ERROR, 0, "the largest error");
    is_i64((int64_t)product_fit(&times, samples, 0, false, &arena), 0, "none");
    ok(!times.n && times.error_frac == 0, "without errors");
    arena_release(&arena);
    return tap_done();
}
