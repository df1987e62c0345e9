/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_EMULATED_PHASES_H
#define NEUROSHARD_TESTS_EMULATED_PHASES_H

#include <cstdint>
#include <cstring>

#include "cuda_runtime.h"

/*
 * The functions of CUB that we use, as plain loops on the host. They are queued
 * like kernels. As in CUB, the first call (d_temp NULL) only returns how much
 * scratch memory the second call needs. Too little scratch memory is an error,
 * and all of it is overwritten.
 */

namespace cub
{

/* Implements the two-phase protocol around `work`. */
template <typename Work>
cudaError_t emulated_phases(void *d_temp, size_t &temp_bytes, size_t needed,
                            cudaStream_t stream, Work work)
{
    if (!d_temp) {
        temp_bytes = needed;
        return cudaSuccess;
    }
    if (temp_bytes < needed)
        return cudaErrorInvalidValue;
    return emulated_enqueue_work(stream, [=]() {
        memset(d_temp, 0xcb, needed);
        work();
    });
}

static inline size_t emulated_temp_bytes(uint64_t n)
{
    return (size_t)(1024 + n / 64);
}

} // namespace cub

#endif
