/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CUDA_HARDWARE_CUH
#define NEUROSHARD_DEVICE_CUDA_HARDWARE_CUH

#include <cuda_runtime.h>

/* Hardware instructions that only nvcc knows. The rest of each .cu file is C++
 * that a host compiler accepts too. tests/emulator/device has the other version
 * of this file. */

/* Declares type name[], 16-byte aligned, as long as the launch's
 * shared_bytes. */
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]

/* Returns the time in nanoseconds, the same on all multiprocessors, in steps of
 * up to 1 us. */
static __device__ inline unsigned long long globaltimer_ns(void)
{
    unsigned long long now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Starts to load an address's cache line into the L2 cache. */
static __device__ inline void prefetch_l2(const void *pos)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(pos));
}

#endif
