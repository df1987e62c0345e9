/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_HOST_DEVICE_H
#define NEUROSHARD_BASE_HOST_DEVICE_H

#include <stdint.h>

/* Marks a function that runs on the host and in kernels. */
#ifdef __CUDACC__
#    define HOST_DEVICE static inline __host__ __device__
#else
#    define HOST_DEVICE static inline
#endif

HOST_DEVICE uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

HOST_DEVICE uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Macros to put before and after the functions of a header that a .cu file
 * includes. */
#ifdef __cplusplus
#    define EXTERN_C_BEGIN extern "C" {
#    define EXTERN_C_END }
#else
#    define EXTERN_C_BEGIN
#    define EXTERN_C_END
#endif

#endif
