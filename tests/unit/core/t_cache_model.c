/* SPDX-License-Identifier: MIT */
#include "core/cache_model.h"

#include "core/rank_law.h"
#include "tests/simulated_cache.h"
#include "tests/tap.h"

static struct table zipf_table(uint64_t n_rows, double alpha)
{
    struct table table;

    table_init(&table);
    table.num_embeddings = n_rows;
    table.zipf_alpha = alpha;
    table.skew_assumed = false;
    return table;
}

static bool is_monotone(const struct cache_curve *curve)
{
    for (unsigned knot = 1; knot < CACHE_KNOTS; knot++)
        if (!(curve->rows[knot] >= curve->rows[knot - 1]) ||
            !(curve->misses[knot] <= curve->misses[knot - 1]))
            return false;
    return curve->rows[0] == 0 && curve->misses[CACHE_KNOTS - 1] == 0;
}

/* Reach and misses of a law are sums over its rows. */
static void check_law(uint32_t n_rows, double alpha, double n_lookups)
{
    const struct table table = zipf_table(n_rows, alpha);
    double sum = 0, off = 0, n_batch = 0;
    struct cache_curve curve;

    cache_curve_init(&curve, &table, n_lookups);
    for (uint32_t r = 1; r <= n_rows; r++)
        sum += pow(r, -alpha);
    for (unsigned k = 0; k < REACH_WINDOWS; k++) {
        const double window = ldexp(1, (int)k);
        double reach = 0, misses = 0;

        for (uint32_t r = 1; r <= n_rows; r++) {
            const double uses = n_lookups * pow(r, -alpha) / sum;

            reach += 1 - exp(-uses * window);
            misses += exp(-uses * window) * (1 - exp(-uses));
        }
        n_batch = k ? n_batch : reach;
        off = fmax(off, fabs(curve.rows[CACHE_LEVELS + k] - reach) / reach);
        off =
            fmax(off, fabs(curve.misses[CACHE_LEVELS + k] - misses) / n_batch);
    }
    ok(off < 3e-4, "%" PRIu32 " rows by Zipf %g: off by %.1e", n_rows, alpha,
       off);
    ok(is_monotone(&curve) && curve.basis == CACHE_MODELLED &&
           curve.rows[CACHE_KNOTS - 1] == n_rows &&
           fabs(curve.misses[0] - n_batch) < 1e-3 * n_batch,
       "from an empty cache to a full one");
}

/* The levels of a uniform law are those of both rules; those of a skewed law
 * change with the fitted constants. */
static void check_levels(void)
{
    struct table table = zipf_table(100000, 0);
    struct cache_curve curve;
    double used;

    cache_curve_init(&curve, &table, 50000);
    used = 1e5 * -expm1(-0.5);
    is_near(curve.rows[8], used / 2, 1e-6 * used, "half the rows of a batch");
    is_near(curve.misses[8], used * (1 + used / 1e5 * -0.5), 0.01 * used,
            "of equal heat have half the hits");
    table.zipf_alpha = 1.1;
    cache_curve_init(&curve, &table, 50000);
    is_near(curve.misses[4] / curve.misses[0], 0.8962, 5e-4, "a quarter");
    is_near(curve.misses[8] / curve.misses[0], 0.7960, 5e-4, "a half");
    is_near(curve.misses[13] / curve.misses[0], 0.6832, 5e-4, "13 of 16");
}

/* --- sources of a curve --- */

static void check_bins(double alpha, double n_lookups)
{
    struct table table = zipf_table(1000000, alpha);
    struct cache_curve of_law, of_bins;

    cache_curve_init(&of_law, &table, n_lookups);
    (void)table_reuse(&table, n_lookups, table.bins);
    table.has_bins = true;
    table.zipf_alpha = DEFAULT_ZIPF_ALPHA;
    is_near(cache_fit_zipf(&table, n_lookups), alpha, 0.02, "bins of a law");
    cache_curve_init(&of_bins, &table, n_lookups);
    ok(of_bins.basis == CACHE_ASSUMED &&
           fabs(of_bins.misses[18] - of_law.misses[18]) <
               0.02 * of_law.misses[0],
       "its misses are assumed");
}

static void check_measured(void)
{
    const struct table law = zipf_table(1000000, 0.9);
    struct cache_curve want, got;
    struct table table = law;
    double off = 0;

    cache_curve_init(&want, &law, 20000);
    table.zipf_alpha = 3; /* has no effect */
    table.n_reach = 8;
    for (unsigned k = 0; k < table.n_reach; k++) {
        table.reach[k] = want.rows[CACHE_LEVELS + k];
        table.misses[k] = want.misses[CACHE_LEVELS + k];
    }
    cache_curve_init(&got, &table, 1);
    ok(is_monotone(&got) && got.basis == CACHE_MEASURED, "measured");
    for (unsigned knot = 0; knot < CACHE_LEVELS + 8; knot++)
        off = fmax(off, fabs(got.misses[knot] - want.misses[knot]));
    ok(off < 0.005 * want.misses[0], "its levels are those of the law: %.4f",
       off / want.misses[0]);
    off = 0;
    for (unsigned knot = CACHE_LEVELS + 8; knot < CACHE_LEVELS + 12; knot++)
        off = fmax(off, fabs(got.misses[knot] - want.misses[knot]));
    ok(off < 0.03 * want.misses[0], "longer windows go on like it: %.4f",
       off / want.misses[0]);
    is_i64(cache_basis_at(&got, (struct cache_point){23, 0}), CACHE_MEASURED,
           "the last measured window");
    is_i64(cache_basis_at(&got, (struct cache_point){23, 0.1}), CACHE_ASSUMED,
           "after it");
    is_i64(cache_basis_at(&want, (struct cache_point){32, 1}), CACHE_MODELLED,
           "a law has no end");
    table.n_reach = 1;
    table.reach[0] = table.misses[0] = 1000;
    cache_curve_init(&got, &table, 1);
    is_near(got.misses[CACHE_LEVELS + 9], 1000, 0, "rows that never come back");
    is_near(got.rows[CACHE_LEVELS + 9], 512000, 1, "fill a cache");
    is_near(got.misses[CACHE_LEVELS + 10], 0, 0, "until it holds all");
    ok(is_monotone(&got), "of them");
}

static void check_edges(void)
{
    struct table table = zipf_table(1, 1);
    struct cache_curve curve;

    cache_curve_init(&curve, &table, 100);
    ok(is_monotone(&curve) && fabs(curve.misses[0] - 1) < 1e-9 &&
           curve.misses[CACHE_LEVELS] < 1e-9,
       "one row");
    cache_curve_init(&curve, &table, 0);
    ok(is_monotone(&curve) && curve.misses[0] == 0, "no lookups");
    table.num_embeddings = 5000000000;
    table.skew_assumed = true;
    cache_curve_init(&curve, &table, 1e6);
    ok(is_monotone(&curve) && curve.basis == CACHE_ASSUMED,
       "a law that is assumed");
    table.n_reach = 3; /* of a table that the log never used */
    cache_curve_init(&curve, &table, 0);
    ok(is_monotone(&curve) && curve.misses[0] == 0, "reach 0");
}

/* --- pools --- */

static void check_pool(void)
{
    const struct table tables[] = {zipf_table(100000, 0.7),
                                   zipf_table(2000000, 1.1)};
    double pool[CACHE_LANES] = {0}, lanes[2][CACHE_LANES];
    struct cache_curve curves[2];
    struct cache_use use;

    for (unsigned t = 0; t < 2; t++) {
        cache_curve_init(&curves[t], &tables[t], 20000);
        cache_embed(lanes[t], &curves[t], t ? 0.25 : 1, t ? 256 : 64, t);
        for (unsigned i = 0; i < CACHE_LANES; i++)
            pool[i] += lanes[t][i];
    }
    for (unsigned knot = 0; knot < CACHE_KNOTS; knot++) {
        use = cache_evaluate(pool, pool[CACHE_ROWS + knot]);
        if (fabs(use.misses - pool[CACHE_MISSES + knot]) > 1e-9 ||
            fabs(use.miss_bytes - pool[CACHE_BYTES + knot]) > 1e-6)
            ok(0, "knot %u is met", knot);
    }
    use = cache_evaluate(pool,
                         (pool[CACHE_ROWS + 20] + pool[CACHE_ROWS + 21]) / 2);
    ok(use.point.knot == 20, "between two knots");
    is_near(use.point.frac, 0.5, 1e-9, "in the middle");
    is_near(use.misses, (pool[CACHE_MISSES + 20] + pool[CACHE_MISSES + 21]) / 2,
            1e-9, "misses are linear");
    is_near(cache_misses(&curves[0], 1, use.point) +
                cache_misses(&curves[1], 0.25, use.point),
            use.misses, 1e-9, "and add up");
    is_near(64 * cache_misses(&curves[0], 1, use.point) +
                256 * cache_misses(&curves[1], 0.25, use.point),
            use.miss_bytes, 1e-6, "as their bytes do");
    is_near(cache_evaluate(pool, 600000).misses, 0, 0, "all rows are held");
    is_near(cache_evaluate(pool, 0).misses, pool[CACHE_MISSES], 0, "none are");
    memset(pool, 0, sizeof(pool));
    is_near(cache_evaluate(pool, 32).misses, 0, 0, "a pool without pieces");
}

static void check_widths(void)
{
    const uint32_t given[] = {64, 8, 128, 64, 16};
    double pool[CACHE_LANES] = {0};
    struct cache_widths widths = {0};

    for (unsigned i = 0; i < 5; i++)
        cache_widths_add(&widths, given[i]);
    is_i64(widths.n, 4, "four widths");
    ok(widths.widths[0] == 8 && widths.widths[3] == 128, "ascending");
    is_i64(cache_widths_class(&widths, 64), 2, "a class of its own");
    is_i64(cache_widths_class(&widths, 32), 2, "the next larger width");
    is_i64(cache_slot_width(pool, &widths), 0, "a pool without pieces");
    pool[CACHE_COUNTS] = 3;
    pool[CACHE_COUNTS + 2] = 1;
    is_i64(cache_slot_width(pool, &widths), 64, "the widest piece");
    for (uint32_t width = 200; width <= 2600; width += 200)
        cache_widths_add(&widths, width);
    is_i64(widths.n, CACHE_MAX_WIDTHS, "too many widths");
    is_i64(widths.widths[CACHE_MAX_WIDTHS - 1], 2600, "the widest stays");
    is_i64(widths.widths[cache_widths_class(&widths, 2400)], 2600,
           "the closest to another one is dropped");
    is_i64(widths.widths[cache_widths_class(&widths, 8)], 8, "not the first");
}

/* --- a share of tests/bench/bench_cache.c --- */

static const double sizes[] = {0.25, 0.5, 0.8, 1.5, 3, 6, 12};

static void check_simulated(const char *what, struct cache_case *of)
{
    struct cache_errors errors = {0};
    const bool shares = of->n_tables > 1;

    of->sizes = sizes;
    of->n_sizes = MOST_SIZES;
    cache_case_compare(of, &errors);
    ok(errors.of_tables[1].n >= 4 * of->n_tables &&
           errors.of_tables[1].worst <= (shares ? 1.5 : 1),
       "%s: off by %.2f points if the cache holds a batch", what,
       errors.of_tables[1].worst);
    ok(errors.of_sums[0].n >= 3 && errors.of_sums[0].worst <= (shares ? 6 : 2),
       "%s: off by %.2f points in smaller caches", what,
       errors.of_sums[0].worst);
}

int main(void)
{
    struct cache_case flat = {.tables = {{30000, 0.7, 3000, .drift = 0}},
                              .n_tables = 1};
    struct cache_case steep = {.tables = {{50000, 1.15, 8000, .drift = 0}},
                               .n_tables = 1};
    struct cache_case drifting = {.tables = {{30000, 0.9, 4000, .drift = 0.01}},
                                  .n_tables = 1,
                                  .n_profiled = 130};
    struct cache_case shared = {.tables = {{30000, 0.6, 2000, .drift = 0},
                                           {20000, 1.1, 4000, .drift = 0},
                                           {9000, 0.9, 1000, .drift = 0}},
                                .n_tables = 3};

    check_law(2000, 1.05, 500);
    check_law(300, 0, 1000);
    check_law(3000, 2.5, 100);
    check_levels();
    check_bins(0.6, 50000);
    check_bins(1.05, 5000);
    check_bins(1.4, 50000);
    check_measured();
    check_edges();
    check_pool();
    check_widths();
    check_simulated("Zipf 0.7", &flat);
    check_simulated("Zipf 1.15", &steep);
    check_simulated("drift by profile", &drifting);
    check_simulated("three tables", &shared);
    return tap_done();
}
