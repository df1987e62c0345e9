/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_GEMM_H
#define NEUROSHARD_COSTMODEL_LEARNING_GEMM_H

#include "base/mem.h"

#include <stdbool.h>

/*
 * The matrix product of training, row-major and dense:
 *
 *     c[m][n] = op(a)[m][k] * op(b)[k][n]
 *
 * op transposes a matrix if the flag of the matrix is set. A transposed a is
 * stored as [k][m], a transposed b as [n][k]. m, n, k >= 1.
 */

/* Prepares OpenBLAS. Call it before gemm, and before any function that trains a
 * net, or evaluates a net in its training format (train_fit, evaluate_model,
 * model_predicts). OpenBLAS runs on one thread, so that a machine always gives
 * the same result. Returns ERR_IO if OpenBLAS cannot be loaded. A second call
 * does nothing. */
int gemm_init(struct err *err) MUST_CHECK;
void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
          const float *a, const float *b, float *c);

#endif
