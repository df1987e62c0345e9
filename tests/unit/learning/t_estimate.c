/* SPDX-License-Identifier: MIT */
/* The linear estimate. It recovers the rates of a known law, no rate is
 * negative, and a prediction stays within the measured range of times. */
#include "costmodel/formulas/estimate.h"

#include "base/rng.h"
#include "costmodel/learning/estimate_fit.h"
#include "tests/tap.h"

#define N 400

static double total_of(const char *name, const struct feature_input *input)
{
    struct feature_set set = {0};
    double out = NAN;

    ok(total_set_add(&set, name), "there is a total '%s'", name);
    feature_set_fill(&set, input, &out);
    return out;
}

static void test_values(void)
{
    const struct feature_input input = {.batch = 512,
                                        .precision = PRECISION_FP32,
                                        .optimizer = OPTIMIZER_ROWWISE_ADAGRAD,
                                        .n_rows = 1 << 20,
                                        .dim = 16,
                                        .pooling_factor = 8,
                                        .n_lookups = 4096,
                                        .n_unique = 1024,
                                        .n_outputs = 512,
                                        .row_bytes = 64};
    const struct {
        const char *name;
        double want;
    } cases[] = {
        {"tables", 1},          {"bags", 512},          {"rows", 1 << 20},
        {"lookups", 4096},      {"unique", 1024},       {"state_rows", 1024},
        {"gather_kib", 256},    {"unique_kib", 64},     {"output_kib", 32},
        {"gather_lines", 4096}, {"unique_lines", 1024}, {"over_32", 0},
        {"over_64", 0},         {"over_128", 0},        {"over_256", 0},
    };
    /* Cache lines of 64 bytes that a row of this many bytes touches, counted by
     * walking along the rows. */
    static const unsigned row_bytes[] = {4, 8, 16, 48, 64, 80, 112, 120, 512};
    struct feature_input stateless = input, row = {.n_lookups = 1};
    struct feature_set set;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        is_near(total_of(cases[i].name, &input), cases[i].want, 0,
                cases[i].name);
    stateless.optimizer = OPTIMIZER_SGD;
    is_near(total_of("state_rows", &stateless), 0, 0, "SGD keeps no state");
    stateless.dim = 129;
    is_near(total_of("over_128", &stateless), 1, 0, "129 columns are over 128");
    is_near(total_of("over_256", &stateless), 0, 0, "and not over 256");
    feature_set_init(&set, TOTALS_ALL);
    is_i64(set.n, sizeof(cases) / sizeof(cases[0]), "these are all");
    for (size_t i = 0; i < sizeof(row_bytes) / sizeof(row_bytes[0]); i++) {
        const unsigned n = row_bytes[i];
        unsigned n_lines = 0;

        row.row_bytes = n;
        for (unsigned k = 0; k < 64; k++)
            n_lines += (k * n + n - 1) / 64 - k * n / 64 + 1;
        is_near(total_of("gather_lines", &row), n_lines / 64.0, 1e-12,
                "lines of a row");
    }
    ok(!total_set_add(&set, "rows"), "no total twice");
    ok(!total_set_add(&set, "row"), "no unknown total");
}

/* Devices that take 2 us, 3 us per table and 5 ns per lookup. They have further
 * totals that cost nothing. */
static void test_fit(void)
{
    static double sums[N * MAX_TOTALS], ms[N];
    struct estimate estimate = {0};
    struct rng rng;
    double worst = 0, other = 0, least = INFINITY;

    feature_set_init(&estimate.totals, TOTALS_ALL);
    rng_init(&rng, 3, 0);
    for (size_t i = 0; i < N; i++) {
        double *row = sums + i * estimate.totals.n;

        for (unsigned k = 0; k < estimate.totals.n; k++)
            row[k] = exp(12 * rng_uniform(&rng));
        ms[i] = 0.002 + 0.003 * row[0] + 5e-6 * row[3];
    }
    estimate_fit(&estimate, sums, ms, N);
    is_near(estimate.base_ms, 0.002, 2e-5, "the constant");
    is_near(estimate.totals.items[0].rate_ms, 0.003, 3e-5, "rate of a table");
    is_near(estimate.totals.items[3].rate_ms, 5e-6, 5e-8, "rate of a lookup");
    for (unsigned k = 0; k < estimate.totals.n; k++) {
        least = fmin(least, estimate.totals.items[k].rate_ms);
        other += k == 0 || k == 3 ? 0 : estimate.totals.items[k].rate_ms;
    }
    ok(least >= 0 && other < 1e-7,
       "nothing else costs, and nothing less than "
       "nothing: %.1e, %.1e",
       least, other);
    for (size_t i = 0; i < N; i++)
        worst = tap_worst(
            worst,
            fabs((estimate.base_ms +
                  estimate_added_ms(&estimate, sums + i * estimate.totals.n)) /
                     ms[i] -
                 1));
    ok(worst < 0.01, "the law, to %.1e", worst);
    ok(estimate.ratio_min > 0.99 && estimate.ratio_max < 1.01 &&
           estimate.ratio_min <= estimate.ratio_max,
       "ratios %.4f to %.4f", estimate.ratio_min, estimate.ratio_max);
    for (size_t i = 0; i < N; i++)
        ms[i] = (i % 2 ? 0.5 : 0.25) *
                estimate_ms(&estimate, sums + i * estimate.totals.n);
    estimate_set_range(&estimate, sums, ms, N);
    is_near(estimate.ratio_min, 0.25, 1e-9, "a quarter of the estimate");
    is_near(estimate.ratio_max, 0.5, 1e-9, "and a half at most");
}

/* Plain least squares would give a negative rate to a column that lowers the
 * time; the estimate gives it 0. A single sample and columns of zeros are
 * accepted, too. */
static void test_edges(void)
{
    double sums[3 * MAX_TOTALS] = {0}, ms[3] = {3, 2, 1};
    struct estimate estimate = {0};

    total_set_add(&estimate.totals, "tables");
    total_set_add(&estimate.totals, "lookups");
    for (size_t i = 0; i < 3; i++)
        sums[i * 2] = (double)i + 1;
    estimate_fit(&estimate, sums, ms, 3);
    is_near(estimate.totals.items[0].rate_ms, 0, 0,
            "more tables, less time: no rate");
    is_near(estimate.totals.items[1].rate_ms, 0, 0,
            "no rate for a column of zeros");
    ok(estimate.base_ms > 0.5 && estimate.base_ms < 3, "but a constant, %.3f",
       estimate.base_ms);
    is_near(estimate.totals.items[1].std, 1, 0,
            "a total that never changes: deviation 1");
    is_near(estimate_bound(&estimate, 1e9), estimate.ratio_max, 0,
            "no answer above the range");
    is_near(estimate_bound(&estimate, -1), estimate.ratio_min, 0, "nor below");
    ok(isnan(estimate_bound(&estimate, NAN)), "NaN passes");
    estimate_fit(&estimate, sums, ms, 1);
    ok(estimate.base_ms > 0 && isfinite(estimate.totals.items[0].rate_ms),
       "one sample");
    is_near(estimate.ratio_max, 1, 2e-3, "is met");
}

int main(void)
{
    test_values();
    test_fit();
    test_edges();
    return tap_done();
}
