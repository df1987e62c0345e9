/* SPDX-License-Identifier: MIT */
/* Shares of single ranks, at the ends of runs and of what is summed exactly. */
#include "core/rank_law.h"

#include "tests/tap.h"

/* Ranks 0 and 1 have a quarter each, 2 to 4 a tenth, 5 to 9 a 25th. */
static void test_runs(void)
{
    static const struct {
        uint32_t rank;
        double share, before;
    } cases[] = {{0, 0.25, 0},   {1, 0.25, 0.25}, {2, 0.1, 0.5},  {4, 0.1, 0.7},
                 {5, 0.04, 0.8}, {9, 0.04, 0.96}, {10, 0.04, 1.0}};
    const struct rank_law law = {.has_bins = true,
                                 .n_rows = 10,
                                 .n_runs = 3,
                                 .first_rank = {0, 2, 5, 10},
                                 .before = {0, 0.5, 0.8, 1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        is_near(law_of_rank(&law, cases[i].rank), cases[i].share, 1e-15,
                "the share of a rank");
        is_near(law_before(&law, cases[i].rank), cases[i].before, 1e-15,
                "and of those before");
    }
}

/* The sum of all is 1, whether or not an integral is a part of it. */
static void test_zipf(void)
{
    static const uint64_t n_rows[] = {1, 127, 128, 129, 1000000};
    static const double alphas[] = {0, 0.5, 1, 1 + 1e-13, 1.2};

    for (size_t i = 0; i < 25; i++) {
        const uint64_t n = n_rows[i / 5];
        const double alpha = alphas[i % 5];
        struct table table;
        struct rank_law law;
        double sum = 0, exact = 0;

        table_init(&table);
        table.num_embeddings = n;
        table.zipf_alpha = alpha;
        law_init(&law, &table, 1000);
        for (uint32_t r = 0; r < n; r++)
            sum += pow(r + 1.0, -alpha);
        for (uint32_t r = 0; r < n && r < 200; r++)
            exact += pow(r + 1.0, -alpha) / sum;
        is_near(law_of_rank(&law, 0), 1 / sum, 2e-6 / sum,
                "the share of the hottest rank");
        is_near(law_before(&law, (double)(n < 200 ? n : 200)), exact, 2e-6,
                "and of the first ranks");
        is_near(law_before(&law, (double)n), 1, 1e-12, "and of all");
    }
}

/* A row that many local batches use is sent but once by each. */
static void test_uses(void)
{
    is_near(law_uses(3, 0), 3, 0, "no limit");
    is_near(law_uses(3, 8), 8 * (1 - exp(-3.0 / 8)), 1e-12, "8 local batches");
    is_near(law_uses(1e9, 8), 8, 1e-9, "no more than those");
}

int main(void)
{
    test_runs();
    test_zipf();
    test_uses();
    return tap_done();
}
