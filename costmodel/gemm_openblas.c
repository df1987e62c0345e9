/* SPDX-License-Identifier: MIT */
#include "costmodel/gemm.h"

#include <cblas.h>

void gemm_init(void)
{
    openblas_set_num_threads(1);
}

void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
          const float *a, const float *b, float beta, float *c)
{
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n,
                (blasint)k, 1, a, (blasint)(transpose_a ? m : k), b,
                (blasint)(transpose_b ? k : n), beta, c, (blasint)n);
}
