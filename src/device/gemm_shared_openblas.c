/* SPDX-License-Identifier: MIT */
#include "device/gemm.h"

#include "base/mem.h"
#include "device/openblas_private.h"

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
    gemm_host(&(struct gemm){.m = 1, .n = 1, .k = 1, .n_batch = 1}, a, b, c);
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

void (*openblas_sgemm(void))(void)
{
    void *address = dlsym(RTLD_DEFAULT, "cblas_sgemm");
    void (*function)(void);

    memcpy(&function, &address, sizeof function);
    return function;
}
