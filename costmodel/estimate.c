/* SPDX-License-Identifier: MIT */
#include "costmodel/estimate.h"

#include <math.h>
#include <string.h>

#define KIB 1024.0
#define MAX_SWEEPS 20000
#define CONVERGED 1e-10
/* No device is estimated below this share of the least time measured. */
#define LEAST_BASE_FRAC 1e-3

/* Numbering of total_set.ids. Only names are stored in files. */
enum total {
    TOTAL_TABLES,
    TOTAL_BAGS,
    TOTAL_ROWS,
    TOTAL_LOOKUPS,
    TOTAL_UNIQUE,
    TOTAL_STATE_ROWS,
    TOTAL_GATHER,
    TOTAL_UNIQUE_BYTES,
    TOTAL_OUTPUT,
    TOTAL_OVER_32, /* columns */
    TOTAL_OVER_64,
    TOTAL_OVER_128,
    TOTAL_OVER_256,
    N_TOTALS
};

static const char *const names[N_TOTALS] = {
    "tables",     "bags",       "rows",       "lookups",    "unique",
    "state_rows", "gather_kib", "unique_kib", "output_kib", "over_32",
    "over_64",    "over_128",   "over_256"};

void total_set_standard(struct total_set *set)
{
    set->n = N_TOTALS;
    for (unsigned id = 0; id < N_TOTALS; id++)
        set->ids[id] = (unsigned char)id;
}

bool total_set_add(struct total_set *set, const char *name)
{
    for (unsigned i = 0; i < set->n; i++)
        if (!strcmp(names[set->ids[i]], name))
            return false;
    for (unsigned id = 0; id < N_TOTALS && set->n < MAX_TOTALS; id++)
        if (!strcmp(names[id], name)) {
            set->ids[set->n++] = (unsigned char)id;
            return true;
        }
    return false;
}

const char *total_set_name(const struct total_set *set, unsigned i)
{
    return names[set->ids[i]];
}

void total_set_fill(const struct total_set *set,
                    const struct feature_input *input, double *out)
{
    const bool has_state = input->optimizer != OPTIMIZER_SGD;
    double all[N_TOTALS];

    all[TOTAL_TABLES] = 1;
    all[TOTAL_BAGS] = input->n_outputs;
    all[TOTAL_ROWS] = input->n_rows;
    all[TOTAL_LOOKUPS] = input->n_lookups;
    all[TOTAL_UNIQUE] = input->n_unique;
    all[TOTAL_STATE_ROWS] = has_state ? input->n_unique : 0;
    all[TOTAL_GATHER] = input->n_lookups * input->row_bytes / KIB;
    all[TOTAL_UNIQUE_BYTES] = input->n_unique * input->row_bytes / KIB;
    all[TOTAL_OUTPUT] = input->n_outputs * input->dim * sizeof(float) / KIB;
    all[TOTAL_OVER_32] = input->dim > 32;
    all[TOTAL_OVER_64] = input->dim > 64;
    all[TOTAL_OVER_128] = input->dim > 128;
    all[TOTAL_OVER_256] = input->dim > 256;
    for (unsigned i = 0; i < set->n; i++)
        out[i] = all[set->ids[i]];
}

/* The normal equations of min |x w - 1|^2, where x is totals over time: row k
 * of a and b, scaled so that a's diagonal is 1 (or 0 for an empty column). */
struct normal {
    size_t n; /* totals and the constant */
    double a[MAX_TOTALS + 1][MAX_TOTALS + 1], b[MAX_TOTALS + 1];
    double scale[MAX_TOTALS + 1];
};

static void fill_normal(struct normal *normal, const double *sums,
                        const double *ms, size_t n_rows)
{
    const size_t n = normal->n;
    double x[MAX_TOTALS + 1];

    for (size_t i = 0; i < n_rows; i++) {
        for (size_t k = 0; k < n; k++)
            x[k] = (k + 1 < n ? sums[i * (n - 1) + k] : 1) / ms[i];
        for (size_t k = 0; k < n; k++) {
            normal->b[k] += x[k];
            for (size_t l = 0; l < n; l++)
                normal->a[k][l] += x[k] * x[l];
        }
    }
    for (size_t k = 0; k < n; k++)
        normal->scale[k] = normal->a[k][k] > 0 ? 1 / sqrt(normal->a[k][k]) : 0;
    for (size_t k = 0; k < n; k++) {
        normal->b[k] *= normal->scale[k];
        for (size_t l = 0; l < n; l++)
            normal->a[k][l] *= normal->scale[k] * normal->scale[l];
    }
}

/* Coordinate descent: each weight in turn takes its best value, not below 0.
 * The problem is convex, so this ends at its least error. */
static void solve_normal(const struct normal *normal, double *w)
{
    for (unsigned sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        double change = 0;

        for (size_t k = 0; k < normal->n; k++) {
            double best = normal->b[k], before = w[k];

            for (size_t l = 0; l < normal->n; l++)
                if (l != k)
                    best -= normal->a[k][l] * w[l];
            w[k] = best > 0 && normal->scale[k] > 0 ? best : 0;
            change = fmax(change, fabs(w[k] - before));
        }
        if (change < CONVERGED)
            break;
    }
}

/* Mean and deviation of the logarithms; a total that never changes gets
 * deviation 1. */
static void scale_totals(struct estimate *estimate, const double *sums,
                         size_t n_rows)
{
    const unsigned n = estimate->totals.n;

    for (unsigned k = 0; k < n; k++) {
        double sum = 0, square = 0, variance;

        for (size_t i = 0; i < n_rows; i++) {
            const double x = log2(1 + sums[i * n + k]);

            sum += x;
            square += x * x;
        }
        estimate->mean[k] = sum / (double)n_rows;
        square /= (double)n_rows;
        variance = square - estimate->mean[k] * estimate->mean[k];
        estimate->std[k] = variance > 1e-9 * square ? sqrt(variance) : 1;
    }
}

void estimate_fit(struct estimate *estimate, const double *sums,
                  const double *ms, size_t n)
{
    const unsigned n_totals = estimate->totals.n;
    struct normal normal = {.n = n_totals + 1};
    double w[MAX_TOTALS + 1] = {0}, least_ms = INFINITY;

    fill_normal(&normal, sums, ms, n);
    solve_normal(&normal, w);
    for (unsigned k = 0; k < n_totals; k++)
        estimate->rate_ms[k] = w[k] * normal.scale[k];
    for (size_t i = 0; i < n; i++)
        least_ms = fmin(least_ms, ms[i]);
    estimate->base_ms =
        fmax(w[n_totals] * normal.scale[n_totals], LEAST_BASE_FRAC * least_ms);
    scale_totals(estimate, sums, n);
    estimate->ratio_min = INFINITY;
    estimate->ratio_max = 0;
    for (size_t i = 0; i < n; i++) {
        const double ratio =
            ms[i] / (estimate->base_ms +
                     estimate_added_ms(estimate, sums + i * n_totals));

        estimate->ratio_min = fmin(estimate->ratio_min, ratio);
        estimate->ratio_max = fmax(estimate->ratio_max, ratio);
    }
}

double estimate_added_ms(const struct estimate *estimate, const double *totals)
{
    double ms = 0;

    for (unsigned k = 0; k < estimate->totals.n; k++)
        ms += estimate->rate_ms[k] * totals[k];
    return ms;
}

double estimate_bound(const struct estimate *estimate, double ratio)
{
    return ratio < estimate->ratio_min   ? estimate->ratio_min
           : ratio > estimate->ratio_max ? estimate->ratio_max
                                         : ratio;
}
