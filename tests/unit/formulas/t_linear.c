/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/linear.h"

#include "tests/rng_normal.h"
#include "tests/tap.h"

#define MAX_ROWS 40
#define MAX_COLUMNS 9

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
    return tap_done();
}
