/* SPDX-License-Identifier: MIT */
#include "core/cache_model.h"

#include "core/rank_law.h"

#include <math.h>
#include <string.h>

const char *const cache_basis_names[] = {"measured", "modelled", "assumed",
                                         NULL};

/* Index of the first window's knot, and of the end. */
#define KNOT_WINDOW CACHE_LEVELS
#define KNOT_END (CACHE_KNOTS - 1)

/* --- levels: caches that are smaller than the rows of a batch --- */

/*
 * Two rules bound the misses of a cache of C slots, a share s of the r rows of
 * a batch. Let h be the hits of a cache of r slots.
 *
 *     by number
 *         The rows with the smallest numbers are always inserted, and all
 *         others never. If numbers do not depend on heat, the hits are s h.
 *     by chance
 *         All missing rows are inserted with the same probability b. A row that
 *         a batch uses with probability q is then resident with probability
 *         q b / (1 - q + q b), so hot rows are resident more often.
 *
 * FBGEMM inserts by number within each set of 32 slots, and the numbers of used
 * rows differ from set to set by chance. The share of the rule by chance is
 * CHANCE_LEAST + CHANCE_SLOPE s^2; the two constants are fitted to simulated
 * caches of 20 Zipf laws.
 */
#define CHANCE_LEAST 0.12
#define CHANCE_SLOPE 0.75

/* Rows in the cache and hits under the rule by chance; entry i has b = (i /
 * CACHE_LEVELS)^3. */
struct chances {
    double rows[CACHE_LEVELS + 1], hits[CACHE_LEVELS + 1];
};

/* Adds n_rows rows; a batch uses each with probability q. */
static void add_chances(struct chances *chances, double n_rows, double q)
{
    for (unsigned i = 1; i <= CACHE_LEVELS; i++) {
        const double share = (double)i / CACHE_LEVELS;
        const double b = share * share * share;
        const double resident = n_rows * q * b / (1 - q + q * b);

        chances->rows[i] += resident;
        chances->hits[i] += q * resident;
    }
}

/* Fills the levels of a curve whose first window is known. The hits by chance
 * are scaled so that all rows of a batch have the hits of the first window. */
static void fill_levels(struct cache_curve *curve,
                        const struct chances *chances)
{
    const double n_used = curve->rows[KNOT_WINDOW];
    const double n_hits = n_used - curve->misses[KNOT_WINDOW];
    const double n_rows = chances->rows[CACHE_LEVELS];
    const double all_hits = chances->hits[CACHE_LEVELS];
    unsigned i = 0;

    for (unsigned level = 0; level < CACHE_LEVELS; level++) {
        const double share = (double)level / CACHE_LEVELS;
        const double chance = CHANCE_LEAST + CHANCE_SLOPE * share * share;
        double frac, hits;

        while (i + 1 < CACHE_LEVELS && chances->rows[i + 1] <= share * n_rows)
            i++;
        frac = n_rows > 0 ? (share * n_rows - chances->rows[i]) /
                                (chances->rows[i + 1] - chances->rows[i])
                          : share;
        hits =
            chances->hits[i] + frac * (chances->hits[i + 1] - chances->hits[i]);
        hits = all_hits > 0 ? hits / all_hits : share;
        curve->rows[level] = share * n_used;
        curve->misses[level] =
            n_used - n_hits * ((1 - chance) * share + chance * hits);
    }
}

/* --- curves of laws --- */

/* Adds n_rows rows to the windows of a curve; a batch uses each with
 * probability q. `used` is the probability that the window uses the row; it is
 * computed from that of half the window without a difference of two close
 * numbers. */
static void add_windows(struct cache_curve *curve, double n_rows, double q)
{
    double used = q;

    for (unsigned k = 0; k < REACH_WINDOWS; k++) {
        curve->rows[KNOT_WINDOW + k] += n_rows * used;
        curve->misses[KNOT_WINDOW + k] += n_rows * q * (1 - used);
        used *= 2 - used;
    }
}

static void fill_zipf(struct cache_curve *curve, const struct table *zipf,
                      double n_lookups)
{
    struct law_group groups[LAW_MAX_GROUPS];
    struct chances chances = {0};
    struct rank_law law;
    size_t n;

    law_init(&law, zipf, n_lookups);
    n = law_split(&law, n_lookups, 0, law.n_rows, groups);
    for (size_t i = 0; i < n; i++) {
        const double q = -expm1(-groups[i].mean);

        add_chances(&chances, groups[i].n_rows, q);
        add_windows(curve, groups[i].n_rows, q);
    }
    fill_levels(curve, &chances);
}

/* --- the law that fits reuse bins --- */

#define MOST_FITTED_ALPHA 3.0
#define COARSE_STEPS 12
#define FINE_STEPS 12

/* Returns the log-likelihood of the table's bins, up to a constant. Each row of
 * the table falls into one of the bins, or is not used by the batch. shares[k]
 * is the share of the n_unique used rows in bin k. */
static double likelihood(const struct table *zipf, double n_lookups,
                         const double shares[REUSE_BINS], double n_unique)
{
    const double n_rows = (double)zipf->num_embeddings;
    double bins[REUSE_BINS], expected, sum;

    expected = table_reuse(zipf, n_lookups, bins);
    sum = (n_rows - n_unique) * log(fmax(n_rows - expected, 1e-9));
    for (unsigned k = 0; k < REUSE_BINS; k++)
        sum += n_unique * shares[k] * log(fmax(expected * bins[k], 1e-9));
    return sum;
}

double cache_fit_zipf(const struct table *table, double n_lookups)
{
    const double golden = (sqrt(5) - 1) / 2;
    double shares[REUSE_BINS], n_unique, best = -INFINITY, low = 0, high = 0;
    struct table zipf = *table;

    n_unique = table_reuse(table, n_lookups, shares);
    zipf.has_bins = false;
    for (unsigned i = 0; i <= COARSE_STEPS; i++) {
        const double step = MOST_FITTED_ALPHA / COARSE_STEPS;
        double fit;

        zipf.zipf_alpha = i * step;
        fit = likelihood(&zipf, n_lookups, shares, n_unique);
        if (fit > best) {
            best = fit;
            low = fmax(zipf.zipf_alpha - step, 0);
            high = fmin(zipf.zipf_alpha + step, MOST_FITTED_ALPHA);
        }
    }
    for (unsigned i = 0; i < FINE_STEPS; i++) {
        const double left = high - golden * (high - low);
        const double right = low + golden * (high - low);
        double fit;

        zipf.zipf_alpha = left;
        fit = likelihood(&zipf, n_lookups, shares, n_unique);
        zipf.zipf_alpha = right;
        if (fit > likelihood(&zipf, n_lookups, shares, n_unique))
            high = right;
        else
            low = left;
    }
    return (low + high) / 2;
}

/* --- curves of measured reach --- */

/*
 * Levels of a measured table. Its rows are modelled as N_GROUPS groups; a batch
 * uses each row of group i with probability q_i = 1 - exp(-2^(i - 17)). The
 * number of used rows of each group, u_i >= 0, is fitted to the measured reach
 * and misses by least squares. Reach counts relative to itself, and misses
 * relative to the rows of a batch. Method: coordinate descent on the normal
 * equations, each coordinate bounded by 0 (Franc, Hlavac and Navara, Sequential
 * coordinate-wise algorithm for the non-negative least squares problem, 2005).
 */
#define N_GROUPS 22
#define N_SWEEPS 400

struct reach_fit {
    double q[N_GROUPS];
    double used[N_GROUPS]; /* rows that a batch uses */
    /* normal equations: sum of products[i][j] used[j] = wanted[i] */
    double products[N_GROUPS][N_GROUPS], wanted[N_GROUPS];
};

/* Adds the equation: sum of factors[i] used[i] = value. */
static void add_equation(struct reach_fit *fit, const double factors[N_GROUPS],
                         double value, double weight)
{
    for (unsigned i = 0; i < N_GROUPS; i++) {
        for (unsigned j = 0; j < N_GROUPS; j++)
            fit->products[i][j] += weight * factors[i] * factors[j];
        fit->wanted[i] += weight * factors[i] * value;
    }
}

static void solve(struct reach_fit *fit)
{
    for (unsigned sweep = 0; sweep < N_SWEEPS; sweep++)
        for (unsigned i = 0; i < N_GROUPS; i++) {
            double rest = fit->wanted[i];

            for (unsigned j = 0; j < N_GROUPS; j++)
                rest -= fit->products[i][j] * fit->used[j];
            fit->used[i] = fmax(fit->used[i] + rest / fit->products[i][i], 0);
        }
}

static void fit_reach(struct reach_fit *fit, const struct table *table)
{
    double unused[N_GROUPS]; /* probability that the window uses no row */

    for (unsigned i = 0; i < N_GROUPS; i++) {
        fit->q[i] = -expm1(-ldexp(1, (int)i - 17));
        unused[i] = exp(-ldexp(1, (int)i - 17));
    }
    for (unsigned k = 0; k < table->n_reach; k++) {
        double reach[N_GROUPS];

        for (unsigned i = 0; i < N_GROUPS; i++)
            reach[i] = (1 - unused[i]) / fit->q[i];
        add_equation(fit, reach, table->reach[k],
                     1 / (table->reach[k] * table->reach[k]));
        add_equation(fit, unused, table->misses[k],
                     1 / (table->reach[0] * table->reach[0]));
        for (unsigned i = 0; i < N_GROUPS; i++)
            unused[i] *= unused[i];
    }
    solve(fit);
}

/* Fills windows after the measured ones. Misses go on falling by the ratio of
 * the last two, until the cache holds all rows. */
static void extend_windows(struct cache_curve *curve, unsigned n_measured)
{
    const double *last = &curve->misses[KNOT_WINDOW + n_measured - 1];
    const double before = n_measured > 1 ? last[-1] : curve->misses[0];
    const double ratio = before > 0 ? fmin(*last / before, 1) : 0;

    for (unsigned k = n_measured; k < REACH_WINDOWS; k++) {
        double *rows = &curve->rows[KNOT_WINDOW + k];
        double *misses = &curve->misses[KNOT_WINDOW + k];

        misses[0] = misses[-1] * ratio;
        rows[0] = rows[-1] + ldexp(misses[-1] + misses[0], (int)k - 2);
        if (rows[0] >= curve->rows[KNOT_END]) {
            rows[0] = curve->rows[KNOT_END];
            misses[0] = 0;
        }
    }
}

static void fill_measured(struct cache_curve *curve, const struct table *table)
{
    struct chances chances = {0};
    struct reach_fit fit = {0};

    fit_reach(&fit, table);
    for (unsigned i = 0; i < N_GROUPS; i++)
        add_chances(&chances, fit.used[i] / fit.q[i], fit.q[i]);
    memcpy(&curve->rows[KNOT_WINDOW], table->reach,
           table->n_reach * sizeof(*table->reach));
    memcpy(&curve->misses[KNOT_WINDOW], table->misses,
           table->n_reach * sizeof(*table->misses));
    fill_levels(curve, &chances);
    extend_windows(curve, table->n_reach);
    curve->n_known = KNOT_WINDOW + table->n_reach;
}

/* Makes rows never fall and misses never grow, which figures with few digits
 * may do. */
static void settle(struct cache_curve *curve)
{
    for (unsigned knot = 1; knot < CACHE_KNOTS; knot++) {
        curve->rows[knot] = fmax(curve->rows[knot], curve->rows[knot - 1]);
        curve->misses[knot] =
            fmin(curve->misses[knot], curve->misses[knot - 1]);
    }
}

void cache_curve_init(struct cache_curve *curve, const struct table *table,
                      double n_lookups)
{
    struct table zipf = *table;

    *curve = (struct cache_curve){.n_known = CACHE_KNOTS};
    curve->rows[KNOT_END] = (double)table->num_embeddings;
    if (table->n_reach && table->reach[0] > 0) {
        fill_measured(curve, table);
    } else if (n_lookups > 0) {
        curve->basis = table->has_bins || table->skew_assumed ? CACHE_ASSUMED
                                                              : CACHE_MODELLED;
        if (table->has_bins)
            zipf.zipf_alpha = cache_fit_zipf(table, n_lookups);
        zipf.has_bins = false;
        fill_zipf(curve, &zipf, n_lookups);
    }
    settle(curve);
}

/* --- widths of slots --- */

void cache_widths_add(struct cache_widths *widths, uint32_t width)
{
    uint32_t all[CACHE_MAX_WIDTHS + 1], n = 0, closest = 0;

    while (n < widths->n && widths->widths[n] < width)
        n++;
    if (n < widths->n && widths->widths[n] == width)
        return;
    memcpy(all, widths->widths, n * sizeof(*all));
    all[n] = width;
    memcpy(all + n + 1, widths->widths + n, (widths->n - n) * sizeof(*all));
    n = widths->n + 1;
    for (uint32_t i = 1; i + 1 < n; i++)
        if ((double)all[i] * all[closest + 1] >
            (double)all[closest] * all[i + 1])
            closest = i;
    if (n > CACHE_MAX_WIDTHS) {
        memmove(all + closest, all + closest + 1,
                (n - closest - 1) * sizeof(*all));
        n--;
    }
    memcpy(widths->widths, all, n * sizeof(*all));
    widths->n = n;
}

unsigned cache_widths_class(const struct cache_widths *widths, uint32_t width)
{
    unsigned class = 0;

    while (class + 1 < widths->n && widths->widths[class] < width)
        class ++;
    return class;
}

/* --- pools --- */

void cache_embed(double lanes[CACHE_LANES], const struct cache_curve *curve,
                 double row_frac, double row_bytes, unsigned width_class)
{
    for (unsigned knot = 0; knot < CACHE_KNOTS; knot++) {
        lanes[CACHE_ROWS + knot] = row_frac * curve->rows[knot];
        lanes[CACHE_MISSES + knot] = row_frac * curve->misses[knot];
        lanes[CACHE_BYTES + knot] = row_bytes * lanes[CACHE_MISSES + knot];
    }
    for (unsigned class = 0; class < CACHE_MAX_WIDTHS; class ++)
        lanes[CACHE_COUNTS + class] = class == width_class;
}

uint32_t cache_slot_width(const double pool[CACHE_LANES],
                          const struct cache_widths *widths)
{
    for (uint32_t class = widths->n; class -- > 0;)
        if (pool[CACHE_COUNTS + class] > 0.5)
            return widths->widths[class];
    return 0;
}

/* Returns a value between the value of a knot and that of the next one. */
static double interpolate(const double *values, struct cache_point point)
{
    const double *value = &values[point.knot];

    return value[0] + point.frac * (value[1] - value[0]);
}

struct cache_use cache_evaluate(const double pool[CACHE_LANES], double n_slots)
{
    const double *rows = &pool[CACHE_ROWS];
    struct cache_use use = {0};
    unsigned end = KNOT_END;

    while (end - use.point.knot > 1) {
        const unsigned middle = (use.point.knot + end) / 2;

        if (rows[middle] <= n_slots)
            use.point.knot = middle;
        else
            end = middle;
    }
    rows += use.point.knot;
    use.point.frac =
        n_slots < rows[1] ? (n_slots - rows[0]) / (rows[1] - rows[0]) : 1;
    use.misses = interpolate(&pool[CACHE_MISSES], use.point);
    use.miss_bytes = interpolate(&pool[CACHE_BYTES], use.point);
    return use;
}

double cache_misses(const struct cache_curve *curve, double row_frac,
                    struct cache_point point)
{
    return row_frac * interpolate(curve->misses, point);
}

enum cache_basis cache_basis_at(const struct cache_curve *curve,
                                struct cache_point point)
{
    return point.knot + (point.frac > 0) < curve->n_known ? curve->basis
                                                          : CACHE_ASSUMED;
}
