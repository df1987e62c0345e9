/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/estimate_fit.h"

#include "costmodel/formulas/linear.h"

#include <math.h>

#define MAX_SWEEPS 20000
#define CONVERGED 1e-10
/* Least constant time of a device (base_ms), as a share of the least measured
 * time. */
#define LEAST_BASE_FRAC 1e-3

/* Normal equations of min |x w - 1|^2, where a row of x is a sample's totals
 * divided by its time. Row k of a and b is scaled so that the diagonal of a is
 * 1 (or 0 for an empty column). */
struct normal {
    size_t n; /* number of unknowns: totals and constant */
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
        normal_add(normal->a[0], normal->b, MAX_TOTALS + 1, x, n, 1, 1);
    }
    for (size_t k = 0; k < n; k++)
        normal->scale[k] = normal->a[k][k] > 0 ? 1 / sqrt(normal->a[k][k]) : 0;
    for (size_t k = 0; k < n; k++) {
        normal->b[k] *= normal->scale[k];
        for (size_t l = 0; l <= k; l++)
            normal->a[l][k] = normal->a[k][l] *=
                normal->scale[k] * normal->scale[l];
    }
}

/* Solves the equations by coordinate descent: each weight in turn takes its
 * best value that is not below 0. The problem is convex, so the descent
 * converges to the least error. */
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

void estimate_set_range(struct estimate *estimate, const double *sums,
                        const double *ms, size_t n)
{
    const size_t width = estimate_width(estimate);

    estimate->ratio_min = INFINITY;
    estimate->ratio_max = 0;
    for (size_t i = 0; i < n; i++) {
        const double ratio = ms[i] / estimate_ms(estimate, sums + i * width);

        estimate->ratio_min = fmin(estimate->ratio_min, ratio);
        estimate->ratio_max = fmax(estimate->ratio_max, ratio);
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
        estimate->totals.items[k].rate_ms = w[k] * normal.scale[k];
    for (size_t i = 0; i < n; i++)
        least_ms = fmin(least_ms, ms[i]);
    estimate->base_ms =
        fmax(w[n_totals] * normal.scale[n_totals], LEAST_BASE_FRAC * least_ms);
    feature_set_scale(&estimate->totals, sums, n, n_totals);
    estimate_set_range(estimate, sums, ms, n);
}
