/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/linear.h"

#include "tests/rng_normal.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <string.h>

#define MAX_ROWS 40
#define MAX_COLUMNS 9
/* Several panels and tiles of the factorisation, and all rests of both. */
#define MAX_SIZE 27

static double predict(const double *w, const double *x, size_t n_columns)
{
    double y = 0;

    for (size_t i = 0; i < n_columns; i++)
        y += w[i] * x[i];
    return y;
}

/* Returns the largest slope of the minimised function, relative to the sum of
 * the magnitudes of its terms. The slope is 0 at the minimum. */
static double slope_of(const double *w, const double *x, const double *y,
                       size_t n_rows, size_t n_columns, double ridge)
{
    double trace = 0, worst = 0;

    for (size_t i = 0; i < n_rows * n_columns; i++)
        trace += x[i] * x[i];
    for (size_t c = 0; c < n_columns; c++) {
        double slope = ridge * trace / (double)n_columns * w[c], size = 0;

        for (size_t r = 0; r < n_rows; r++) {
            const double *row = x + r * n_columns;

            slope += row[c] * (predict(w, row, n_columns) - y[r]);
            size += fabs(row[c] * y[r]);
        }
        worst = tap_worst(worst, fabs(slope) / size);
    }
    return worst;
}

/* The factor and the solution by definition, element by element: products are
 * subtracted in ascending order. */
static void solve_plain(double *a, double *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            for (size_t k = 0; k < j; k++)
                a[i * n + j] -= a[i * n + k] * a[j * n + k];
            if (j < i)
                a[i * n + j] /= a[j * n + j];
            else
                a[i * n + i] = sqrt(a[i * n + i]);
        }
    for (size_t i = 0; i < n; w[i] /= a[i * n + i], i++)
        for (size_t k = 0; k < i; k++)
            w[i] -= a[i * n + k] * w[k];
    for (size_t i = n; i-- > 0; w[i] /= a[i * n + i])
        for (size_t k = i + 1; k < n; k++)
            w[i] -= a[k * n + i] * w[k];
}

/* Returns whether solve_symmetric gives the factor, its transpose and the
 * solution bit by bit, for a random matrix whose upper triangle is NAN. */
static bool solves_exactly(size_t n, struct rng *rng)
{
    static double a[MAX_SIZE * MAX_SIZE], plain[MAX_SIZE * MAX_SIZE];
    double w[MAX_SIZE], plain_w[MAX_SIZE];
    bool equal = true;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            a[i * n + j] = j > i ? NAN : rng_normal(rng);
        a[i * n + i] = 3 * (double)n + rng_uniform(rng);
        w[i] = rng_normal(rng);
    }
    memcpy(plain, a, sizeof(a));
    memcpy(plain_w, w, sizeof(w));
    solve_plain(plain, plain_w, n);
    solve_symmetric(a, w, n);
    for (size_t i = 0; i < n; i++) {
        equal = equal && w[i] == plain_w[i];
        for (size_t j = 0; j <= i; j++)
            equal = equal && a[i * n + j] == plain[i * n + j] &&
                    a[j * n + i] == plain[i * n + j];
    }
    return equal;
}

int main(void)
{
    static const double ridges[] = {1e-9, 1e-3, 1, 100};
    double x[MAX_ROWS * MAX_COLUMNS], y[MAX_ROWS], w[MAX_COLUMNS];
    double worst = 0, smallest = INFINITY;
    struct rng rng;

    rng_init(&rng, 61, 0);
    for (size_t round = 0; round < tap_size(400, 20000); round++) {
        size_t n_columns = 1 + rng_below(&rng, MAX_COLUMNS);
        size_t n_rows = n_columns + rng_below(&rng, MAX_ROWS - n_columns);

        for (size_t i = 0; i < n_rows * n_columns; i++)
            x[i] = rng_normal(&rng);
        for (size_t i = 0; i < n_rows; i++)
            y[i] = rng_normal(&rng);
        linear_fit(w, x, y, n_rows, n_columns, ridges[round % 4]);
        worst = tap_worst(
            worst, slope_of(w, x, y, n_rows, n_columns, ridges[round % 4]));
        w[0] += 1e-3;
        smallest = fmin(
            smallest, slope_of(w, x, y, n_rows, n_columns, ridges[round % 4]));
    }
    ok(worst < 1e-6, "the slope is 0 at the fit, to %.1e", worst);
    ok(smallest > 1e-6, "the slope is not 0 elsewhere: %.1e", smallest);
    for (size_t n = 1; n <= MAX_SIZE; n++)
        ok(solves_exactly(n, &rng), "%zu equations are solved exactly", n);
    return tap_done();
}
