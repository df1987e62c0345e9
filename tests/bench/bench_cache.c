/* SPDX-License-Identifier: MIT */
/*
 * Compares predicted misses of caches with an exact simulation of FBGEMM's LRU
 * cache: Zipf laws, drifting traces by their profiles, and tables that share a
 * cache. Errors are in points: percent of the rows of a batch. Also measures
 * the time to evaluate a pool.
 */
#include "tests/simulated_cache.h"

#include <stdio.h>

#include "base/clock.h"
#include "core/rank_law.h"

static const double all_sizes[] = {0.25, 0.5, 0.8, 1.5, 3, 6, 12};
static const double few_sizes[] = {0.5, 2, 6};

/* The predictions are to have at most these errors. */
#define MOST_IF_FITS 1.0
#define MOST_IF_LESS 2.0
#define MOST_SHARED 1.5
#define MOST_SHARED_IF_LESS 6.0

static void print_error(const char *what, const char *caches,
                        const struct cache_error *error, double most)
{
    printf("%-34s %-12s %5u %8.2f %8.2f %8.1f\n", what, caches, error->n,
           error->worst, error->sum / error->n, most);
}

static void compare_laws(struct cache_errors *errors)
{
    static const double alphas[] = {0.6, 0.8, 1.0, 1.1, 1.2};

    for (unsigned i = 0; i < 20; i++) {
        struct cache_case of = {
            .tables = {{.n_rows = i % 2 ? 1000000 : 100000,
                        .n_lookups = i / 2 % 2 ? 50000 : 5000,
                        .alpha = alphas[i / 4]}},
            .n_tables = 1,
            .sizes = all_sizes,
            .n_sizes = MOST_SIZES,
            .seed = i};

        cache_case_compare(&of, errors);
    }
}

static void compare_drifts(struct cache_errors *errors)
{
    static const double alphas[] = {0.7, 0.9, 1.1};

    for (unsigned i = 0; i < 12; i++) {
        struct cache_case of = {
            .tables = {{.n_rows = 300000,
                        .n_lookups = i / 2 % 2 ? 30000 : 5000,
                        .alpha = alphas[i / 4],
                        .drift = i % 2 ? 0.01 : 0.001}},
            .n_tables = 1,
            .sizes = all_sizes,
            .n_sizes = MOST_SIZES,
            .n_profiled = 300,
            .seed = 100 + i};

        cache_case_compare(&of, errors);
    }
}

static void compare_shared(struct cache_errors *errors)
{
    struct rng rng;

    rng_init(&rng, 7, 0);
    for (unsigned i = 0; i < 8; i++) {
        struct cache_case of = {.n_tables = 2 + i % 4,
                                .sizes = few_sizes,
                                .n_sizes = 3,
                                .seed = 200 + i};

        for (uint32_t t = 0; t < of.n_tables; t++)
            of.tables[t] = (struct trace_table){
                .n_rows = (uint32_t)(5e4 * pow(10, rng_uniform(&rng))),
                .n_lookups = (uint32_t)(3e3 * pow(7, rng_uniform(&rng))),
                .alpha = 0.6 + 0.6 * rng_uniform(&rng)};
        cache_case_compare(&of, errors);
    }
}

/* Measures the time to add a piece to a pool and to evaluate the pool. */
static void measure_speed(void)
{
    enum { N_PIECES = 64, N_POOLS = 2000000 };
    static double lanes[N_PIECES][CACHE_LANES];
    double pool[CACHE_LANES] = {0}, sum = 0, begin, ns[2];
    struct cache_curve curve;
    struct table table;

    table_init(&table);
    table.num_embeddings = 1000000;
    for (unsigned i = 0; i < N_PIECES; i++) {
        table.zipf_alpha = 0.6 + 0.01 * i;
        cache_curve_init(&curve, &table, 10000);
        cache_embed(lanes[i], &curve, 1, 512, 0);
        for (unsigned k = 0; k < CACHE_LANES; k++)
            pool[k] += lanes[i][k];
    }
    begin = clock_ms();
    for (unsigned i = 0; i < N_POOLS; i++)
        sum += cache_evaluate(pool, 1e4 + 2654435761u * i % 20000000u).misses;
    ns[0] = (clock_ms() - begin) * 1e6 / N_POOLS;
    begin = clock_ms();
    for (unsigned i = 0; i < N_POOLS; i++) {
        const double sign = i & 1 ? -1 : 1;

        for (unsigned k = 0; k < CACHE_LANES; k++)
            pool[k] += sign * lanes[i / 2 % N_PIECES][k];
    }
    ns[1] = (clock_ms() - begin) * 1e6 / N_POOLS;
    printf("\nevaluating a pool takes %.0f ns, adding a piece %.0f ns%s\n",
           ns[0], ns[1], sum < 0 ? "!" : "");
}

/* Prints the time to compute the curve of a table. */
static void measure_curve(const char *what, const struct table *table)
{
    const unsigned n = 20;
    const double begin = clock_ms();
    struct cache_curve curve;

    for (unsigned i = 0; i < n; i++)
        cache_curve_init(&curve, table, 65536);
    printf("a curve from %s takes %.2f ms\n", what, (clock_ms() - begin) / n);
}

static void measure_curves(void)
{
    struct cache_curve curve;
    struct table table, bins;

    table_init(&table);
    table.num_embeddings = 40000000;
    bins = table;
    bins.has_bins = true;
    (void)table_reuse(&table, 65536, bins.bins);
    measure_curve("an exponent", &table);
    measure_curve("reuse bins", &bins);
    cache_curve_init(&curve, &table, 65536);
    table.n_reach = REACH_WINDOWS;
    memcpy(table.reach, curve.rows + CACHE_LEVELS, sizeof(table.reach));
    memcpy(table.misses, curve.misses + CACHE_LEVELS, sizeof(table.misses));
    measure_curve("measured reach", &table);
}

int main(void)
{
    struct cache_errors laws = {0}, drifts = {0}, shared = {0};

    printf("Miss ratio against an exact simulation, in points\n"
           "%-34s %-12s %5s %8s %8s %8s\n",
           "traces", "cache", "cases", "at most", "mean", "allowed");
    compare_laws(&laws);
    print_error("20 laws x 7 sizes", "holds batch", &laws.of_tables[1],
                MOST_IF_FITS);
    print_error("", "less", &laws.of_tables[0], MOST_IF_LESS);
    compare_drifts(&drifts);
    print_error("12 drifting traces x 7, profiled", "holds batch",
                &drifts.of_tables[1], MOST_IF_FITS);
    print_error("", "less", &drifts.of_tables[0], MOST_IF_LESS);
    compare_shared(&shared);
    print_error("8 caches of 2 to 5 tables x 3", "holds batch",
                &shared.of_tables[1], MOST_SHARED);
    print_error("", "less, sum", &shared.of_sums[0], MOST_SHARED_IF_LESS);
    measure_speed();
    measure_curves();
    return 0;
}
