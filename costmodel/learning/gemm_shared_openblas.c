/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/gemm.h"

#include <cblas.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * OpenBLAS is loaded on demand. If it were linked, it would start threads in
 * every command, before main. If there is no memory for these threads, the
 * destructor of OpenBLAS waits for ever.
 */

#define LIBRARY "libopenblas.so.0"
/* Free memory that OpenBLAS needs for its first matrix product, with a margin
 * for other mappings. OpenBLAS maps 128 MiB, and retries for ever if there is
 * not enough memory. */
#define BUFFER_BYTES ((size_t)160 << 20)

/* Makes OpenBLAS allocate its buffer while there is enough memory. OpenBLAS
 * keeps the buffer. */
static void take_buffer(void)
{
    const float a[1] = {1}, b[1] = {1};
    float c[1];
    void *room = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED)
        mem_exhausted(1, BUFFER_BYTES);
    munmap(room, BUFFER_BYTES);
    gemm(false, false, 1, 1, 1, a, b, c);
}

int gemm_init(struct err *err)
{
    /* OpenBLAS reads OPENBLAS_NUM_THREADS when it is loaded, so it starts no
     * thread. */
    if (setenv("OPENBLAS_NUM_THREADS", "1", 1))
        mem_exhausted(1, sizeof LIBRARY);
    /* The library is never closed: its handle lives as long as the process. */
    if (!dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL))
        return err_set(err, ERR_IO, "cannot load OpenBLAS: %s", dlerror());
    if (!dlsym(RTLD_DEFAULT, "cblas_sgemm"))
        return err_set(err, ERR_IO, "'%s' has no cblas_sgemm", LIBRARY);
    take_buffer();
    return 0;
}

void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
          const float *a, const float *b, float *c)
{
    void *address = dlsym(RTLD_DEFAULT, "cblas_sgemm");
    __typeof__(cblas_sgemm) *sgemm;

    memcpy(&sgemm, &address, sizeof sgemm);
    sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
          transpose_b ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n,
          (blasint)k, 1, a, (blasint)(transpose_a ? m : k), b,
          (blasint)(transpose_b ? k : n), 0, c, (blasint)n);
}
