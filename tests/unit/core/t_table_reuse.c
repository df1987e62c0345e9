/* SPDX-License-Identifier: MIT */
#include "core/rank_law.h"

#include "tests/tap.h"

#include <time.h>

static struct table zipf_table(uint64_t n_rows, double alpha)
{
    struct table table;

    table_init(&table);
    table.num_embeddings = n_rows;
    table.zipf_alpha = alpha;
    return table;
}

static unsigned bin_of(uint64_t count)
{
    unsigned k = 0;

    while (k < REUSE_BINS - 1 && count > 1ull << k)
        k++;
    return k;
}

/* The definition of reuse: sums over every rank and every count, with Poisson
 * terms by lgamma. */
static double reuse_brute(uint64_t n_rows, double alpha, double n_lookups,
                          double bins[REUSE_BINS])
{
    double sum = 0, unique = 0;

    memset(bins, 0, REUSE_BINS * sizeof(bins[0]));
    for (uint64_t r = 1; r <= n_rows; r++)
        sum += pow((double)r, -alpha);
    for (uint64_t r = 1; r <= n_rows; r++) {
        double mean = n_lookups * pow((double)r, -alpha) / sum;
        double reach = 10 * sqrt(mean) + 30;
        double first = floor(fmax(1, mean - reach));

        for (double c = first; c <= mean + reach; c++) {
            double p = exp(c * log(mean) - mean - lgamma(c + 1));

            bins[bin_of((uint64_t)c)] += p;
            unique += p;
        }
    }
    for (unsigned k = 0; k < REUSE_BINS; k++)
        bins[k] /= unique;
    return unique;
}

/* Integrates over ranks by the midpoint rule in the logarithm of the rank. The
 * integrand is rank^-alpha. If n_first > 0, the expected lookups of the first
 * rank, it is the probability that a row is looked up at least once. */
static double sum_far(double begin, double end, double alpha, double n_first)
{
    enum { N_STEPS = 100000 };
    double step = log(end / begin) / N_STEPS, sum = 0;

    for (int i = 0; i < N_STEPS; i++) {
        double rank = begin * exp((i + 0.5) * step), power = pow(rank, -alpha);

        sum += rank * step * (n_first > 0 ? -expm1(-n_first * power) : power);
    }
    return sum;
}

/* Unique rows of a table with too many rows to sum: the first rows are summed,
 * the others integrated. */
static double unique_of_many(double n_rows, double alpha, double n_lookups)
{
    enum { N_NEAR = 10000 };
    double near = 0, far = sum_far(N_NEAR + 0.5, n_rows + 0.5, alpha, 0);
    double unique = 0, n_first;

    for (int r = 1; r <= N_NEAR; r++)
        near += pow(r, -alpha);
    n_first = n_lookups / (near + far);
    for (int r = 1; r <= N_NEAR; r++)
        unique -= expm1(-n_first * pow(r, -alpha));
    return unique + sum_far(N_NEAR + 0.5, n_rows + 0.5, alpha, n_first);
}

static double bins_sum(const double bins[REUSE_BINS])
{
    double sum = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++)
        sum += bins[k];
    return sum;
}

static void test_brute_force(void)
{
    static const uint64_t rows[] = {2, 3, 127, 128, 129, 1000, 20000};
    static const double alphas[] = {0, 0.3, 0.99, 1, 1.05, 2.4, 20};
    static const double lookups[] = {0.5, 1, 77, 65536, 1e6};
    size_t n_rows = sizeof(rows) / sizeof(rows[0]);

    for (size_t i = 0; i < n_rows * 7; i++) {
        struct table table = zipf_table(rows[i / 7], alphas[i % 7]);
        double worst_unique = 0, worst_share = 0;

        for (size_t j = 0; j < 5; j++) {
            double got[REUSE_BINS], want[REUSE_BINS];
            double unique = table_reuse(&table, lookups[j], got);
            double unique_want = reuse_brute(
                table.num_embeddings, table.zipf_alpha, lookups[j], want);

            worst_unique =
                tap_worst(worst_unique, fabs(unique / unique_want - 1));
            for (unsigned k = 0; k < REUSE_BINS; k++)
                worst_share = tap_worst(worst_share, fabs(got[k] - want[k]));
        }
        ok(worst_unique < 2e-4 && worst_share < 5e-4,
           "%" PRIu64 " rows, alpha %g: as the sum over all ranks "
           "(unique rows off by %.1e, shares by %.1e)",
           table.num_embeddings, table.zipf_alpha, worst_unique, worst_share);
    }
}

/* Uniform rows have a closed form. */
static void test_uniform(void)
{
    struct table table = zipf_table(1000000, 0);
    double bins[REUSE_BINS], n = 2e6, rows = 1e6;
    double unique = table_reuse(&table, n, bins);

    is_near(unique, rows * (1 - exp(-2)), 1e-6 * rows, "uniform: unique rows");
    is_near(bins[0], 2 * exp(-2) / (1 - exp(-2)), 1e-9, "used once");
    is_near(bins[1], 2 * exp(-2) / (1 - exp(-2)), 1e-9, "used twice");
    is_near(bins[2], (4.0 / 3 + 2.0 / 3) * exp(-2) / (1 - exp(-2)), 1e-9,
            "used three or four times");
}

/* If all rows are used alike, their counts are Poisson, and the error of the
 * approximation is not blurred by a mix of rows. */
static void test_poisson(void)
{
    struct table table = zipf_table(2, 0);
    double worst = 0;

    for (double mean = 1; mean < 40000; mean *= 1.07) {
        double got[REUSE_BINS], want[REUSE_BINS];

        table_reuse(&table, 2 * mean, got);
        reuse_brute(2, 0, 2 * mean, want);
        for (unsigned k = 0; k < REUSE_BINS; k++)
            worst = tap_worst(worst, fabs(got[k] - want[k]));
    }
    ok(worst < 2e-5, "Poisson counts, off by %.1e", worst);
}

static void test_edges(void)
{
    struct table table = zipf_table(1000, 1.05);
    double bins[REUSE_BINS];

    is_near(table_reuse(&table, 0, bins), 0, 0, "no look-ups, no rows");
    is_near(bins_sum(bins), 0, 0, "no look-ups: a histogram of zeros");
    is_near(table_reuse(&table, 1e-9, bins), 1e-9, 1e-15, "next to none");
    is_near(bins[0], 1, 1e-9, "next to none: used once");

    table.num_embeddings = 1;
    is_near(table_reuse(&table, 32768, bins), 1, 0, "one row");
    is_near(bins[15], 1, 0, "one row: in the bin of all look-ups");
    table_reuse(&table, 32769, bins);
    is_near(bins[16], 1, 0, "one row: the last bin has no end");
    is_near(table_reuse(&table, 0.25, bins), 0.25, 0, "one row, seldom used");
    is_near(bins[0], 1, 0, "one row, seldom used: once");

    table.num_embeddings = UINT64_MAX;
    is_near(table_reuse(&table, 1e6, bins) / unique_of_many(0x1p64, 1.05, 1e6),
            1, 1e-3, "2^64 rows: unique ones");
    is_near(bins_sum(bins), 1, 1e-12, "2^64 rows: shares add up to 1");
}

/* More lookups or more rows give more unique rows; more skew gives fewer. */
static void test_monotone(void)
{
    double bins[REUSE_BINS], last = 0, now;
    int rising = 1, bounded = 1, sums = 1;

    for (double n = 1; n < 1e9; n *= 1.7) {
        struct table table = zipf_table(3000000, 1.05);

        now = table_reuse(&table, n, bins);
        rising &= now > last || now == 3e6;
        bounded &= now <= fmin(3e6, n);
        sums &= fabs(bins_sum(bins) - 1) < 1e-12;
        last = now;
    }
    ok(rising, "unique rows rise with the look-ups");
    ok(bounded, "unique rows are at most min(rows, look-ups)");
    ok(sums, "shares add up to 1");

    rising = 1, last = 0;
    for (double rows = 1; rows < 1e12; rows = ceil(rows * 1.3)) {
        struct table table = zipf_table((uint64_t)rows, 0.9);

        now = table_reuse(&table, 1e5, bins);
        rising &= now > last * (1 - 1e-6); /* tolerance, as bucket edges move */
        last = now;
    }
    ok(rising, "unique rows rise with the rows");

    rising = 1, last = 1e12;
    for (double alpha = 0; alpha < 5; alpha += 0.05) {
        struct table table = zipf_table(10000000, alpha);

        now = table_reuse(&table, 1e6, bins);
        rising &= now < last;
        last = now;
    }
    ok(rising, "unique rows fall with the skew");
}

static void test_own_bins(void)
{
    struct table table = zipf_table(1000, 1.05);
    double bins[REUSE_BINS], mean;

    table.has_bins = true;
    table.bins[0] = 0.5;
    table.bins[3] = 0.499; /* sum below 1, as printed with few digits */
    mean = (0.5 * 1 + 0.499 * 6) / 0.999;
    is_near(table_reuse(&table, 350, bins), 350 / mean, 1e-9,
            "own bins: look-ups over mean use");
    ok(!memcmp(bins, table.bins, sizeof(bins)), "own bins come back");
    is_near(table_reuse(&table, 1e6, bins), 1000, 0, "capped at the rows");
    is_near(table_reuse(&table, 0, bins), 0, 0, "no look-ups");
    is_near(bins_sum(bins), 0, 0, "no look-ups: zeros");
    memset(table.bins, 0, sizeof(table.bins));
    is_near(table_reuse(&table, 10, bins), 0, 0, "bins of zeros");
}

static void test_bin_counts(void)
{
    is_near(reuse_bin_count(0), 1, 0, "bin 0");
    is_near(reuse_bin_count(1), 2, 0, "bin 1");
    for (unsigned k = 2; k < REUSE_BINS; k++)
        is_near(reuse_bin_count(k),
                (ldexp(1, (int)k - 1) + ldexp(1, (int)k)) / 2, 0,
                "the middle of a bin");
}

/* The time is printed, not checked. A row-by-row sum over 5e9 rows would take a
 * minute. */
static void test_speed(void)
{
    struct table table = zipf_table(5000000000, 1.05);
    double bins[REUSE_BINS], unique = 0;
    clock_t start = clock();

    for (int i = 0; i < 100; i++)
        unique += table_reuse(&table, 65536 * 40, bins) / 100;
    printf("# 5e9 rows: %.0f unique rows, %.1f us a table\n", unique,
           (double)(clock() - start) / CLOCKS_PER_SEC * 1e4);
    ok(unique > 65536 && unique < 65536 * 40, "5e9 rows");
}

int main(void)
{
    test_brute_force();
    test_uniform();
    test_poisson();
    test_edges();
    test_monotone();
    test_own_bins();
    test_bin_counts();
    test_speed();
    return tap_done();
}
