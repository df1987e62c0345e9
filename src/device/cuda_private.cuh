/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CUDA_PRIVATE_CUH
#define NEUROSHARD_DEVICE_CUDA_PRIVATE_CUH

#include "device/cuda_hardware.cuh"
#include "device/device_ops.h"

#include <cuda_runtime.h>

/* Declarations shared by the files of the CUDA body. All work of a device goes
 * through its one stream, in order. An error of queued work shows up where the
 * host next waits. */

struct hold;
struct nvml;

struct device_cuda {
    struct device base;
    int ordinal;
    cudaStream_t stream;               /* owned */
    cudaEvent_t marks[DEVICE_N_MARKS]; /* owned */
    unsigned n_sms;
    /* Memory that a flush reads, at least twice the last-level cache; owned. */
    void *d_flush;
    size_t flush_bytes;
    /* One word for results that nobody reads. Kernels store to it so that the
     * compiler keeps the computation. Owned. */
    unsigned *d_sink;
    /* Host memory mapped into the GPU: both pointers to it; owned. */
    struct hold *hold, *d_hold;
    unsigned n_holds; /* ticket of the last hold */
    bool is_held;
    bool never_holds; /* NEUROSHARD_NO_HOLD, see neuroshard(1) */
    double held_since_ms;
    struct nvml *nvml; /* owned; NULL if missing */
    /* Buffer for work that is queued before the buffer's next use. It is kept,
     * because allocating and freeing wait for the GPU. */
    struct device_region workspace;
};

static inline struct device_cuda *device_cuda_of(struct device *device)
{
    return (struct device_cuda *)device;
}

/* Returns 0 if the status is a success. Otherwise returns -1 and sets
 * ERR_DEVICE with the text of the call and CUDA's message. */
int cuda_check(cudaError_t status, const char *call,
               struct err *err) MUST_CHECK;
#define CUDA(call, err) cuda_check((call), #call, (err))

/* Launches kernel<<<grid, block, shared_bytes, stream>>>(arguments...), in
 * syntax that any C++ compiler accepts. */
template <typename... Parameters, typename... Arguments>
static inline cudaError_t launch(void (*kernel)(Parameters...), dim3 grid,
                                 dim3 block, size_t shared_bytes,
                                 cudaStream_t stream, Arguments &&...arguments)
{
    cudaLaunchConfig_t config = {};

    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel,
                              static_cast<Arguments &&>(arguments)...);
}

/* Returns the blocks of CUDA_BLOCK threads to launch: as many as all
 * multiprocessors hold at once, but at most as n_threads need, and at least
 * 1. */
#define CUDA_BLOCK 256u
unsigned cuda_n_blocks(const struct device_cuda *cuda, uint64_t n_threads);
/* For grids whose threads share items in strides: a thread's first item
 * (grid_first) and the distance to its next one (grid_step). */
static __device__ inline uint64_t grid_first(void)
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline uint64_t grid_step(void)
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* Launches cuda_n_blocks blocks, whose threads share n items in strides. */
template <typename... Parameters, typename... Arguments>
static inline cudaError_t launch_over(const struct device_cuda *cuda,
                                      uint64_t n, void (*kernel)(Parameters...),
                                      Arguments &&...arguments)
{
    return launch(kernel, cuda_n_blocks(cuda, n), CUDA_BLOCK, 0, cuda->stream,
                  static_cast<Arguments &&>(arguments)...);
}

/*
 * CUB's algorithms. They take long to compile and are therefore in cub_cuda.cu.
 * As in CUB, a call with d_temp NULL only stores in *temp_bytes the scratch
 * that the call needs.
 */

/* Returns how many low bits differ among keys below n, at least 1. */
static inline unsigned cuda_key_bits(uint64_t n)
{
    unsigned bits = 1;

    while (bits < 64 && 1ull << bits < n)
        bits++;
    return bits;
}

/* Sorts n < 2^32 pairs by bits [0, n_bits) of the keys; the sort is stable. Its
 * d_temp and temp_bytes are those in `pairs`. */
int cuda_sort_pairs(struct device_cuda *cuda, struct device_pairs *pairs,
                    uint64_t n, unsigned n_bits, struct err *err) MUST_CHECK;
/* Replaces each value by the sum of the values before it. */
int cuda_exclusive_sum(struct device_cuda *cuda, uint64_t *d_values, uint64_t n,
                       void *d_temp, size_t *temp_bytes,
                       struct err *err) MUST_CHECK;

#endif
