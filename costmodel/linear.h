/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LINEAR_H
#define NEUROSHARD_COSTMODEL_LINEAR_H

#include <stddef.h>

/* Ridge regression: the w[n_columns] that minimises |x w - y|^2 +
 * ridge * mean(diag(x'x)) * |w|^2; x[n_rows][n_columns], ridge > 0. */
void linear_fit(double *w, const double *x, const double *y, size_t n_rows,
                size_t n_columns, double ridge);

/* Least squares row by row: adds to the normal equations a w = b, of which a's
 * lower triangle counts and whose rows are `stride` apart, that x[n] times the
 * first n of w is to be y, with that weight. */
void normal_add(double *a, double *b, size_t stride, const double *x, size_t n,
                double y, double weight);

/* w[n] becomes the x of a x = w. The lower triangle of a[n][n] gives a, which
 * is symmetric and positive definite; Cholesky's factor overwrites it, and its
 * transpose the upper one. */
void solve_symmetric(double *a, double *w, size_t n);

#endif
