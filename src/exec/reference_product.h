/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_REFERENCE_PRODUCT_H
#define NEUROSHARD_EXEC_REFERENCE_PRODUCT_H

#include "base/parallel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Matrix product of the reference, in double precision and without a library.
 *
 *     c[i][j] = sum over l of a(i, l) * b(l, j)
 *
 * The sum starts at 0 and adds l = 0, 1, ... in order, so the result does not
 * depend on the threads.
 */

/* Matrix in memory: element (i, j) is elements[i * row + j * column]. */
struct reference_matrix {
    const double *elements;
    size_t row, column; /* distances in elements */
};

struct reference_product {
    size_t m, n, k;                      /* a is m x k, and b is k x n */
    struct reference_matrix left, right; /* a and b */
    double *out;                         /* [m][n] */
    bool is_added; /* true: the product is added to `out` */
};

/* Computes the product with the threads of the pool. */
void reference_multiply(struct pool *pool,
                        const struct reference_product *product);

#endif
