/* SPDX-License-Identifier: MIT */
#include "device/gemm_shared_openblas.h"

#include "base/mem.h"
#include "device/gemm.h"
#include "device/gemm_buffers.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/*
 * OpenBLAS is loaded on demand. If it were linked, it would start threads in
 * every command, before main. If there is no memory for these threads, the
 * destructor of OpenBLAS waits for ever.
 */

#define LIBRARY "libopenblas.so.0"

/* Makes OpenBLAS map its first buffer while there is enough address space. */
static void take_buffer(void)
{
    const float a[1] = {1}, b[1] = {1};
    float c[1];

    if (!openblas_has_room())
        openblas_no_room();
    gemm_host(&(struct gemm){.m = 1, .n = 1, .k = 1, .n_batch = 1}, a, b, c);
}

int gemm_init(struct err *err)
{
    if (dlsym(RTLD_DEFAULT, "cblas_sgemm"))
        return 0;
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

/* Stores the address of a function of OpenBLAS, or NULL, in `function`. */
static void find(const char *name, void *function)
{
    void *address = dlsym(RTLD_DEFAULT, name);

    memcpy(function, &address, sizeof address);
}

void (*openblas_sgemm(void))(void)
{
    void (*function)(void);

    find("cblas_sgemm", &function);
    return function;
}

struct openblas_buffers openblas_buffers(void)
{
    struct openblas_buffers buffers;

    find("blas_memory_alloc", &buffers.take);
    find("blas_memory_free", &buffers.give);
    return buffers;
}
