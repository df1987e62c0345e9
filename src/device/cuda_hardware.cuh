/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CUDA_HARDWARE_CUH
#define NEUROSHARD_DEVICE_CUDA_HARDWARE_CUH

#include <cuda_runtime.h>

/* Hardware instructions that only nvcc knows. The rest of each .cu file is C++
 * that a host compiler accepts too. Tests on a host replace this file by the
 * one in tests/emulator/device. */

/* Declares the array name[] of this type in shared memory, 16-byte aligned. Its
 * size is the parameter shared_bytes of the launch. */
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]

/* Returns the GPU's time in nanoseconds. It is the same on all multiprocessors
 * and advances in steps of up to 1 us. */
static __device__ inline unsigned long long globaltimer_ns(void)
{
    unsigned long long now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Starts to load the cache line at this address into the L2 cache. */
static __device__ inline void prefetch_l2(const void *pos)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(pos));
}

#endif
