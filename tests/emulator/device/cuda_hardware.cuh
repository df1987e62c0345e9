/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CUDA_HARDWARE_CUH
#define NEUROSHARD_DEVICE_CUDA_HARDWARE_CUH

#include <cuda_runtime.h>

/* Emulated versions of the definitions in src/device/cuda_hardware.cuh. */

#define DYNAMIC_SHARED(type, name) \
    type *name = (type *)emulated_dynamic_shared()

static __device__ inline unsigned long long globaltimer_ns(void)
{
    return emulated_globaltimer_ns();
}

static __device__ inline void prefetch_l2(const void *)
{
}

#endif
