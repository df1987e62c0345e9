/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/linear.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

void normal_add(double *a, double *b, size_t stride, const double *x, size_t n,
                double y, double weight)
{
    for (size_t i = 0; i < n; i++) {
        b[i] += weight * x[i] * y;
        for (size_t j = 0; j <= i; j++)
            a[i * stride + j] += weight * x[i] * x[j];
    }
}

/*
 * Cholesky decomposition, one panel of WIDE columns after the other. A tile is
 * TALL rows of a panel; it stays in registers while all columns left of the
 * panel are subtracted. Each element has its products subtracted one by one in
 * ascending order of the column, so the factor is the same for any size of
 * tiles. Vectors use the compilers' own extension (gcc, clang: vector_size).
 */
#define TALL 4
#define WIDE 4
#define LANES 2 /* of any x86-64 */

typedef double vec
    __attribute__((vector_size(LANES * 8), may_alias, aligned(8)));

static inline vec *as_vecs(double *x)
{
    return (vec *)(void *)x;
}

/* Subtracts the columns left of column `begin` from a tile of `tall` rows,
 * which starts there. panel[begin][WIDE] holds rows begin .. begin + WIDE - 1
 * of the factor, transposed. */
static inline __attribute__((always_inline)) void
subtract(double *rows, size_t stride, size_t begin, double *panel, size_t tall)
{
    vec sums[TALL][WIDE / LANES];

    for (size_t r = 0; r < tall; r++)
        for (size_t v = 0; v < WIDE / LANES; v++)
            sums[r][v] = as_vecs(rows + r * stride + begin)[v];
    for (size_t k = 0; k < begin; k++)
        for (size_t r = 0; r < tall; r++)
            for (size_t v = 0; v < WIDE / LANES; v++)
                sums[r][v] -=
                    rows[r * stride + k] * as_vecs(panel + k * WIDE)[v];
    for (size_t r = 0; r < tall; r++)
        for (size_t v = 0; v < WIDE / LANES; v++)
            as_vecs(rows + r * stride + begin)[v] = sums[r][v];
}

/* Finishes row i in the panel of columns begin .. end - 1, from which all
 * columns left of the panel are subtracted. */
static void finish_row(double *a, size_t n, size_t i, size_t begin, size_t end)
{
    double *row = a + i * n;

    for (size_t k = begin; k < end && k < i; k++) {
        double *column = a + k * n;

        row[k] /= column[k];
        column[i] = row[k];
        for (size_t j = k + 1; j < end && j <= i; j++)
            row[j] -= row[k] * column[j];
    }
    if (i < end)
        row[i] = sqrt(row[i]);
}

/* Computes columns begin .. end - 1 of the factor. panel[n][WIDE] is scratch.
 */
static void factor_panel(double *a, size_t n, size_t begin, size_t end,
                         double *panel)
{
    size_t i = begin;

    for (size_t k = 0; k < begin; k++)
        memcpy(panel + k * WIDE, a + k * n + begin,
               (end - begin) * sizeof(*panel));
    for (; end == begin + WIDE && i + TALL <= n; i += TALL) {
        subtract(a + i * n, n, begin, panel, TALL);
        for (size_t r = i; r < i + TALL; r++)
            finish_row(a, n, r, begin, end);
    }
    for (; i < n; i++) {
        for (size_t k = 0; k < begin; k++)
            for (size_t j = begin; j < end && j <= i; j++)
                a[i * n + j] -= a[i * n + k] * panel[k * WIDE + j - begin];
        finish_row(a, n, i, begin, end);
    }
}

/* The factor is also stored transposed above the diagonal. A tile on the
 * diagonal may change elements above it; the transposed factor replaces them
 * later. */
void solve_symmetric(double *a, double *w, size_t n)
{
    double *panel = mem_alloc(n, WIDE * sizeof(*panel));

    for (size_t begin = 0; begin < n; begin += WIDE)
        factor_panel(a, n, begin, begin + WIDE < n ? begin + WIDE : n, panel);
    mem_free(panel);
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
