/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_LINEAR_H
#define NEUROSHARD_COSTMODEL_FORMULAS_LINEAR_H

#include <stddef.h>

/* Ridge regression. Finds w[n_columns] that minimises |x w - y|^2 + ridge *
 * mean(diag(x'x)) * |w|^2, for x[n_rows][n_columns] and ridge > 0. */
void linear_fit(double *w, const double *x, const double *y, size_t n_rows,
                size_t n_columns, double ridge);

/* Least squares row by row. Adds one equation to the normal equations a w = b.
 * By this equation, which has the given weight, x[n] times the first n elements
 * of w should be y. Only the lower triangle of a is used; its rows are `stride`
 * apart. */
void normal_add(double *a, double *b, size_t stride, const double *x, size_t n,
                double y, double weight);

/* Solves a x = w for a symmetric positive definite a[n][n], given by its lower
 * triangle. The solution replaces w[n]. The Cholesky factor overwrites the
 * lower triangle of a, and the transposed factor overwrites the upper
 * triangle. */
void solve_symmetric(double *a, double *w, size_t n);

#endif
