/* SPDX-License-Identifier: MIT */
#include "base/stats.h"

#include "base/rng.h"
#include "tests/tap.h"

static void test_simple(void)
{
    const double want[] = {1, 2, 4, 10}, got[] = {1.1, 1.8, 4, 15};
    double x[] = {4, 1, 3, 2}, apes[4];

    is_near(stats_mean(want, 4), 4.25, 1e-15, "mean");
    is_near(stats_mse(want, got, 4), (0.01 + 0.04 + 25) / 4, 1e-12, "mse");
    stats_apes(apes, want, got, 4);
    is_near(stats_mean(apes, 4), (0.1 + 0.1 + 0.5) / 4, 1e-12, "mape");
    is_near(stats_median(apes, 4), 0.1, 1e-12, "median ape");
    is_near(stats_quantile(x, 4, 0.25), 1.75, 1e-15, "lower quartile");
    is_near(stats_quantile(x, 4, 0), 1, 0, "least");
    is_near(stats_quantile(x, 4, 1), 4, 0, "greatest");
    is_near(stats_median(x, 4), 2.5, 1e-15, "median of four");
    is_near(stats_median(x, 3), 2, 0, "median of three");
    ok(x[0] < x[1] && x[1] < x[2] && x[2] < x[3], "sorted in place");
    stats_apes(apes, (const double[]){-2}, (const double[]){-3}, 1);
    is_near(apes[0], 0.5, 1e-15, "ape of negative numbers");
}

static void test_empty(void)
{
    double x[1] = {0};

    ok(isnan(stats_mean(x, 0)) && isnan(stats_median(x, 0)) &&
           isnan(stats_mse(x, x, 0)) && isnan(stats_kendall_tau(x, x, 0)),
       "nothing has no statistics");
}

/* Returns Kendall's tau-b computed from its definition. */
static double tau_by_pairs(const double *x, const double *y, int n)
{
    double sum = 0, not_tied_x = 0, not_tied_y = 0;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            int dx = (x[i] > x[j]) - (x[i] < x[j]);
            int dy = (y[i] > y[j]) - (y[i] < y[j]);

            sum += dx * dy;
            not_tied_x += dx != 0;
            not_tied_y += dy != 0;
        }
    return sum / sqrt(not_tied_x * not_tied_y);
}

static void test_tau(void)
{
    const double up[] = {1, 2, 3, 4}, down[] = {4, 3, 2, 1}, flat[4] = {0};
    double worst = 0;
    struct rng rng;

    is_near(stats_kendall_tau(up, up, 4), 1, 1e-15, "same order");
    is_near(stats_kendall_tau(up, down, 4), -1, 1e-15, "opposite order");
    ok(isnan(stats_kendall_tau(up, flat, 4)), "all tied has no tau");
    ok(isnan(stats_kendall_tau(up, up, 1)), "one point has no tau");
    rng_init(&rng, 1, 0);
    for (int i = 0; i < 500; i++) {
        double x[60], y[60];
        int n = 2 + (int)rng_below(&rng, 59);
        uint64_t n_values = 2 + rng_below(&rng, 100);

        for (int j = 0; j < n; j++) {
            x[j] = (double)rng_below(&rng, n_values);
            y[j] = x[j] + (double)rng_below(&rng, n_values);
        }
        x[0] = y[0] = -1; /* prevents that all values are tied */
        worst = tap_worst(worst, fabs(stats_kendall_tau(x, y, (size_t)n) -
                                      tau_by_pairs(x, y, n)));
    }
    is_near(worst, 0, 1e-12, "500 random lists with ties, pair by pair");
}

int main(void)
{
    test_simple();
    test_empty();
    test_tau();
    return tap_done();
}
