/* SPDX-License-Identifier: MIT */
#include "device/gemm.h"

#include <cblas.h>
#include <stdlib.h>

/* Asks OpenBLAS, which is linked into the program, for one thread. OpenBLAS'
 * own constructor has no priority, so it runs after this function and starts no
 * thread. */
__attribute__((constructor(101))) static void ask_for_no_threads(void)
{
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
}

int gemm_init(struct err *err)
{
    (void)err;
    return 0;
}

void gemm_host(const struct gemm *gemm, const float *a, const float *b,
               float *c)
{
    const CBLAS_TRANSPOSE op_a = gemm->transpose_a ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE op_b = gemm->transpose_b ? CblasTrans : CblasNoTrans;
    const blasint m = (blasint)gemm->m, n = (blasint)gemm->n;
    const blasint k = (blasint)gemm->k;

    for (uint32_t i = 0; i < gemm->n_batch; i++)
        cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, 1,
                    a + i * gemm->stride_a, gemm->transpose_a ? m : k,
                    b + i * gemm->stride_b, gemm->transpose_b ? k : n,
                    gemm->adds ? 1 : 0, c + i * gemm->stride_c, n);
}
