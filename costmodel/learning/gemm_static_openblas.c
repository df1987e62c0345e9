/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/gemm.h"

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

void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
          const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n,
                (blasint)k, 1, a, (blasint)(transpose_a ? m : k), b,
                (blasint)(transpose_b ? k : n), 0, c, (blasint)n);
}
