/* SPDX-License-Identifier: MIT */
#include "device/gemm_host_openblas.h"
#include "device/gemm_shared_openblas.h"

#include <cblas.h>

void gemm_host_part(const struct gemm *gemm, const struct gemm_part *part,
                    const float *a, const float *b, float *c)
{
    const CBLAS_TRANSPOSE op_a = gemm->transpose_a ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE op_b = gemm->transpose_b ? CblasTrans : CblasNoTrans;
    const blasint m = (blasint)(part->m_end - part->m_begin);
    const blasint n = (blasint)(part->n_end - part->n_begin);
    const blasint k = (blasint)gemm->k;
    /* Elements from one row to the next, as stored. */
    const blasint step_a = gemm->transpose_a ? (blasint)gemm->m : k;
    const blasint step_b = gemm->transpose_b ? k : (blasint)gemm->n;
    __typeof__(cblas_sgemm) *sgemm =
        (__typeof__(cblas_sgemm) *)openblas_sgemm();

    a += (size_t)part->m_begin * (gemm->transpose_a ? 1 : gemm->k);
    b += (size_t)part->n_begin * (gemm->transpose_b ? gemm->k : 1);
    c += (size_t)part->m_begin * gemm->n + part->n_begin;
    for (uint32_t i = part->batch_begin; i < part->batch_end; i++)
        sgemm(CblasRowMajor, op_a, op_b, m, n, k, 1, a + i * gemm->stride_a,
              step_a, b + i * gemm->stride_b, step_b, gemm->adds ? 1 : 0,
              c + i * gemm->stride_c, (blasint)gemm->n);
}

void gemm_host(const struct gemm *gemm, const float *a, const float *b,
               float *c)
{
    const struct gemm_part all = {
        .batch_end = gemm->n_batch, .m_end = gemm->m, .n_end = gemm->n};

    gemm_host_part(gemm, &all, a, b, c);
}
