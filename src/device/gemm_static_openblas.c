/* SPDX-License-Identifier: MIT */
#include "device/gemm.h"

#include "device/gemm_shared_openblas.h"

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

void (*openblas_sgemm(void))(void)
{
    return (void (*)(void))cblas_sgemm;
}

/* Declared in no header of OpenBLAS. */
void *blas_memory_alloc(int position);
void blas_memory_free(void *buffer);

struct openblas_buffers openblas_buffers(void)
{
    return (struct openblas_buffers){blas_memory_alloc, blas_memory_free};
}
