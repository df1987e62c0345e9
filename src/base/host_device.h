/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_HOST_DEVICE_H
#define NEUROSHARD_BASE_HOST_DEVICE_H

#include <stdint.h>

/* Attributes of functions, which the compiler checks. */
/* The caller must use the result. */
#define MUST_CHECK __attribute__((warn_unused_result))
/* The function never returns NULL. */
#define NEVER_NULL __attribute__((returns_nonnull))
/* Parameter `fmt`, counted from 1, is a format of printf. Parameter `args` is
 * the first argument of the format; 0 stands for a va_list. */
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

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
