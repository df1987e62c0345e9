/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_HOST_DEVICE_H
#define NEUROSHARD_BASE_HOST_DEVICE_H

#include <stdint.h>

/* A function for the host and for kernels. */
#ifdef __CUDACC__
#    define HOST_DEVICE static inline __host__ __device__
#else
#    define HOST_DEVICE static inline
#endif

#endif
