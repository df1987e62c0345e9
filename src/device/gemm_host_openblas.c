/* SPDX-License-Identifier: MIT */
#include "device/gemm.h"

#include "device/openblas_private.h"

#include <cblas.h>

void gemm_host(const struct gemm *gemm, const float *a, const float *b,
               float *c)
{
    const CBLAS_TRANSPOSE op_a = gemm->transpose_a ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE op_b = gemm->transpose_b ? CblasTrans : CblasNoTrans;
    const blasint m = (blasint)gemm->m, n = (blasint)gemm->n;
    const blasint k = (blasint)gemm->k;
    __typeof__(cblas_sgemm) *sgemm =
        (__typeof__(cblas_sgemm) *)openblas_sgemm();

    for (uint32_t i = 0; i < gemm->n_batch; i++)
        sgemm(CblasRowMajor, op_a, op_b, m, n, k, 1, a + i * gemm->stride_a,
              gemm->transpose_a ? m : k, b + i * gemm->stride_b,
              gemm->transpose_b ? k : n, gemm->adds ? 1 : 0,
              c + i * gemm->stride_c, n);
}
