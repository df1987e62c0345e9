/* SPDX-License-Identifier: MIT */
#include "device/gemm_buffers.h"

#include "base/mem.h"
#include "device/gemm.h"
#include "device/gemm_shared_openblas.h"

#include <sys/mman.h>

/*
 * A product takes one of OpenBLAS's buffers while it runs. OpenBLAS maps a new
 * buffer if all others are in use, keeps it for later products, and retries for
 * ever if there is not enough address space.
 */

/* Free address space that OpenBLAS needs for a buffer of 128 MiB, with a margin
 * for other mappings. */
#define BUFFER_BYTES ((size_t)160 << 20)
/* Address space that a thread may need in addition to its buffer: 128 MiB that
 * the C library reserves for the heap of a thread, and its stack. */
#define THREAD_BYTES ((size_t)160 << 20)

static bool has_room(size_t n_bytes)
{
    void *room = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room != MAP_FAILED)
        munmap(room, n_bytes);
    return room != MAP_FAILED;
}

bool openblas_has_room(void)
{
    return has_room(BUFFER_BYTES);
}

void openblas_no_room(void)
{
    mem_exhausted(1, BUFFER_BYTES);
}

int gemm_reserve(unsigned *n_threads, struct err *err)
{
    struct openblas_buffers buffers;
    void **taken;
    unsigned n = 0;

    if (gemm_init(err))
        return -1;
    buffers = openblas_buffers();
    if (*n_threads > 1 && buffers.take && buffers.give) {
        taken = mem_alloc(*n_threads, sizeof *taken);
        while (n < *n_threads && has_room(BUFFER_BYTES + n * THREAD_BYTES))
            taken[n++] = buffers.take(0);
        for (unsigned i = 0; i < n; i++)
            buffers.give(taken[i]);
        mem_free(taken);
    }
    *n_threads = n > 1 ? n : 1;
    return 0;
}
