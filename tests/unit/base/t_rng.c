/* SPDX-License-Identifier: MIT */
#include "base/rng.h"

#include "tests/rng_normal.h"
#include "tests/tap.h"

#include <string.h>

/* The first outputs of the authors' reference code. */
static void test_known(void)
{
    struct rng rng = {{1, 2, 3, 4}};

    ok(mix64(1234567 + UINT64_C(0x9e3779b97f4a7c15)) ==
           UINT64_C(6457827717110365317),
       "splitmix64 of 1234567");
    ok(rng_u64(&rng) == 11520 && rng_u64(&rng) == 0 &&
           rng_u64(&rng) == 1509978240 &&
           rng_u64(&rng) == UINT64_C(1215971899390074240),
       "xoshiro256** from state 1 2 3 4");
}

static void test_streams(void)
{
    struct rng a, b;
    int n_same = 0;

    rng_init(&a, 7, 0);
    rng_init(&b, 7, 0);
    ok(rng_u64(&a) == rng_u64(&b), "same seed and stream, same numbers");
    for (uint64_t stream = 1; stream < 100; stream++) {
        rng_init(&a, 7, 0);
        rng_init(&b, 7, stream);
        n_same += rng_u64(&a) == rng_u64(&b);
        rng_init(&b, stream + 7, 0);
        n_same += rng_u64(&a) == rng_u64(&b);
    }
    is_i64(n_same, 0, "other streams and seeds, other numbers");
    rng_init(&a, 5, 9);
    rng_init(&b, 9, 5);
    ok(rng_u64(&a) != rng_u64(&b), "seed and stream do not swap");
}

/* Returns chi squared of n draws in n_bins; about n_bins if draws are
 * uniform. */
static double chi_squared(const int *count, int n_bins, int n)
{
    double sum = 0, want = (double)n / n_bins;

    for (int i = 0; i < n_bins; i++)
        sum += (count[i] - want) * (count[i] - want) / want;
    return sum;
}

static void test_below(void)
{
    struct rng rng;
    int count[10] = {0}, n_high = 0;
    uint64_t n = UINT64_C(3) << 62;

    rng_init(&rng, 1, 0);
    for (int i = 0; i < 100000; i++)
        count[rng_below(&rng, 10)]++;
    /* 99.99% quantile of chi squared with 9 degrees of freedom */
    ok(chi_squared(count, 10, 100000) < 33.7, "rng_below(10) is uniform");
    /* x % n would put half of the draws into the first third */
    for (int i = 0; i < 30000; i++)
        n_high += rng_below(&rng, n) >= n / 3;
    is_near(n_high, 20000, 500, "rng_below has no modulo bias");
    ok(rng_below(&rng, 1) == 0, "below 1 is 0");
    memset(count, 0, sizeof count);
    for (int i = 0; i < 100000; i++)
        count[rng_draw(&rng, 10)]++;
    ok(chi_squared(count, 10, 100000) < 33.7, "rng_draw(10) is uniform");
    ok(rng_draw(&rng, 1) == 0 && rng_draw(&rng, UINT32_MAX) < UINT32_MAX,
       "rng_draw keeps below 1 and below the most");
}

static void test_uniform(void)
{
    struct rng rng;
    double sum = 0, low = 1, high = 0;
    const int n = 100000;

    rng_init(&rng, 2, 0);
    for (int i = 0; i < n; i++) {
        double x = rng_uniform(&rng);

        sum += x;
        low = fmin(low, x);
        high = fmax(high, x);
    }
    ok(low >= 0 && high < 1, "uniform stays in [0, 1)");
    is_near(sum / n, 0.5, 0.005, "mean of uniform");
}

static void test_normal(void)
{
    struct rng rng;
    double sum = 0, sum2 = 0, sum4 = 0;
    int n_tail = 0;
    const int n = 200000;

    rng_init(&rng, 3, 0);
    for (int i = 0; i < n; i++) {
        double x = rng_normal(&rng);

        sum += x;
        sum2 += x * x;
        sum4 += x * x * x * x;
        n_tail += fabs(x) > 1.959963984540054;
    }
    is_near(sum / n, 0, 0.01, "mean of normal");
    is_near(sum2 / n, 1, 0.02, "variance of normal");
    is_near(sum4 / n, 3, 0.15, "fourth moment of normal");
    is_near((double)n_tail / n, 0.05, 0.003, "tails of normal");
}

static void test_shuffle(void)
{
    struct rng rng;
    int count[6] = {0};
    uint32_t one[1] = {42};

    rng_init(&rng, 4, 0);
    for (int i = 0; i < 60000; i++) {
        uint32_t idx[3] = {0, 1, 2};

        rng_shuffle(&rng, idx, 3);
        /* the order's index: 0 1 2, 0 2 1, 1 0 2, 1 2 0, 2 0 1, 2 1 0 */
        count[idx[0] * 2 + (idx[1] > idx[2])]++;
    }
    /* 99.99% quantile of chi squared with 5 degrees of freedom */
    ok(chi_squared(count, 6, 60000) < 25.7, "all orders are as likely");
    rng_shuffle(&rng, one, 1);
    rng_shuffle(&rng, one, 0);
    is_i64(one[0], 42, "shuffling one or no element changes nothing");
}

int main(void)
{
    test_known();
    test_streams();
    test_below();
    test_uniform();
    test_normal();
    test_shuffle();
    return tap_done();
}
