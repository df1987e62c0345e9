/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/linear.h"

#include "base/mem.h"

#include <math.h>

void normal_add(double *a, double *b, size_t stride, const double *x, size_t n,
                double y, double weight)
{
    for (size_t i = 0; i < n; i++) {
        b[i] += weight * x[i] * y;
        for (size_t j = 0; j <= i; j++)
            a[i * stride + j] += weight * x[i] * x[j];
    }
}

/* Subtracts a multiple of a row: row[n] -= factor * other[n]. */
static void subtract(double *restrict row, const double *restrict other,
                     double factor, size_t n)
{
    for (size_t j = 0; j < n; j++)
        row[j] -= factor * other[j];
}

/* Cholesky decomposition. The factor is also stored transposed above the
 * diagonal. With this copy the innermost loop runs along two rows, so a
 * compiler can vectorise it. */
void solve_symmetric(double *a, double *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double *row = a + i * n;

        for (size_t k = 0; k < i; k++) {
            double *column = a + k * n;

            row[k] /= column[k];
            column[i] = row[k];
            subtract(row + k + 1, column + k + 1, row[k], i - k);
        }
        row[i] = sqrt(row[i]);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            w[i] -= a[i * n + k] * w[k];
        w[i] /= a[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            w[i] -= a[i * n + k] * w[k];
        w[i] /= a[i * n + i];
    }
}

void linear_fit(double *w, const double *x, const double *y, size_t n_rows,
                size_t n_columns, double ridge)
{
    double *a = mem_alloc(n_columns * n_columns, sizeof(*a));
    double trace = 0;

    for (size_t i = 0; i < n_columns; i++)
        w[i] = 0;
    for (size_t r = 0; r < n_rows; r++)
        normal_add(a, w, n_columns, x + r * n_columns, n_columns, y[r], 1);
    for (size_t i = 0; i < n_columns; i++)
        trace += a[i * n_columns + i];
    for (size_t i = 0; i < n_columns; i++)
        a[i * n_columns + i] += ridge * (trace / (double)n_columns + 1e-300);
    solve_symmetric(a, w, n_columns);
    mem_free(a);
}
