/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_GEMM_H
#define NEUROSHARD_COSTMODEL_GEMM_H

#include "base/mem.h"

#include <stdbool.h>

/*
 * The matrix product of training, row-major and dense:
 *
 *     c[m][n] = op(a)[m][k] * op(b)[k][n]
 *
 * where op transposes if told: a is stored [k][m], b [n][k]. m, n, k >= 1.
 */

/* Call before gemm, also before what trains or asks a net of training
 * (train_fit, evaluate_model, model_says): makes OpenBLAS ready, on one
 * thread, so that one machine gives one result. ERR_IO where it cannot be
 * loaded. A second call does nothing. */
int gemm_init(struct err *err) MUST_CHECK;
void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
          const float *a, const float *b, float *c);

#endif
