/* SPDX-License-Identifier: MIT */
/* Shares of single ranks: at the ends of runs, and at the end of the ranks that
 * are summed exactly. */
#include "core/rank_law.h"

#include "tests/tap.h"

/* Ranks 0 and 1 have a share of 1/4 each, ranks 2 to 4 of 1/10, and ranks 5 to
 * 9 of 1/25. */
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

/* The shares add up to 1, whether or not the tail is an integral. */
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

/* Without lookups no row is used, for any histogram. If each used row has one
 * lookup, four lookups use four rows. A table of three rows then has one row
 * with two lookups. */
static void test_apportion(void)
{
    static const struct {
        double once, twice; /* shares of the rows */
        uint64_t n_lookups, n_rows, n_once, n_twice, of_once, of_twice;
    } cases[] = {
        {1, 0, 0, 10, 0, 0, 0, 0}, {0, 0, 0, 10, 0, 0, 0, 0},
        {0, 1, 0, 1, 0, 0, 0, 0},  {1, 0, 4, 10, 4, 0, 4, 0},
        {1, 0, 4, 3, 3, 0, 4, 0},  {0, 1, 4, 10, 0, 2, 0, 4},
        {1, 1, 6, 10, 2, 2, 2, 4}, {0, 0, 4, 10, 4, 0, 4, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const double bins[REUSE_BINS] = {cases[i].once, cases[i].twice};
        uint64_t unique[REUSE_BINS], lookups[REUSE_BINS], hotter = 0;

        law_apportion(bins, cases[i].n_lookups, cases[i].n_rows, unique,
                      lookups);
        for (int k = 2; k < REUSE_BINS; k++)
            hotter += unique[k] + lookups[k];
        ok(unique[0] == cases[i].n_once && unique[1] == cases[i].n_twice &&
               lookups[0] == cases[i].of_once &&
               lookups[1] == cases[i].of_twice && !hotter,
           "case %zu: %llu rows once, %llu twice", i,
           (unsigned long long)unique[0], (unsigned long long)unique[1]);
    }
}

/* Each local batch sends a row only once, even if it uses the row often. */
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
    test_apportion();
    test_uses();
    return tap_done();
}
