/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CUDA_HARDWARE_CUH
#define NEUROSHARD_DEVICE_CUDA_HARDWARE_CUH

#include <cuda_runtime.h>

/* The words of the hardware that only nvcc knows. Everything else in a .cu is
 * C++ that a host compiler takes too: tests/emulator/device has the other body
 * of this file. */

/* type name[], as many as the launch's shared_bytes hold; 16-byte aligned. */
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]

/* Nanoseconds, the same on all multiprocessors; steps of up to 1 us. */
static __device__ inline unsigned long long globaltimer_ns(void)
{
    unsigned long long now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Starts to bring the line of an address into the L2 cache. */
static __device__ inline void prefetch_l2(const void *at)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(at));
}

#endif
