/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CUDA_PRIVATE_CUH
#define NEUROSHARD_DEVICE_CUDA_PRIVATE_CUH

#include "device/cuda_hardware.cuh"
#include "device/device_ops.h"

#include <cuda_runtime.h>

/* What the parts of the CUDA body share. All work of a device goes through its
 * one stream, in order; errors of work that was queued show where the host
 * next waits. */

struct hold;
struct nvml;

struct device_cuda {
    struct device base;
    int ordinal;
    cudaStream_t stream;               /* owned */
    cudaEvent_t marks[DEVICE_N_MARKS]; /* owned */
    unsigned n_sms;
    /* What a flush reads, at least twice the last-level cache; owned. */
    void *d_flush;
    size_t flush_bytes;
    unsigned *d_sink; /* one word that kernels store results to which nobody
                         reads, so that they are computed; owned */
    struct hold *hold, *d_hold; /* host memory that a GPU sees; owned */
    unsigned n_holds;           /* the ticket of the last one */
    bool is_held;
    bool never_holds; /* NEUROSHARD_NO_HOLD, see neuroshard(1) */
    double held_since_ms;
    struct nvml *nvml; /* owned; NULL where there is none */
    /* For work that is queued before its next use: kept, as taking and giving
     * it back waits for the GPU. */
    struct device_region workspace;
};

static inline struct device_cuda *device_cuda_of(struct device *device)
{
    return (struct device_cuda *)device;
}

/* 0, or -1 with the call's text and CUDA's words (ERR_DEVICE). */
int cuda_check(cudaError_t status, const char *call,
               struct err *err) MUST_CHECK;
#define CUDA(call, err) cuda_check((call), #call, (err))

/* kernel<<<grid, block, shared_bytes, stream>>>(arguments...), in words that
 * any C++ compiler takes. */
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

/* So many blocks of CUDA_BLOCK threads as all multiprocessors hold at once, but
 * no more than n_threads need; at least 1. */
#define CUDA_BLOCK 256u
unsigned cuda_n_blocks(const struct device_cuda *cuda, uint64_t n_threads);
/* A thread's first item where the threads of a grid share items in strides, and
 * how far it is to its next. */
static __device__ inline uint64_t grid_first(void)
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline uint64_t grid_step(void)
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* Launches these blocks, whose threads share n items in strides. */
template <typename... Parameters, typename... Arguments>
static inline cudaError_t launch_over(const struct device_cuda *cuda,
                                      uint64_t n, void (*kernel)(Parameters...),
                                      Arguments &&...arguments)
{
    return launch(kernel, cuda_n_blocks(cuda, n), CUDA_BLOCK, 0, cuda->stream,
                  static_cast<Arguments &&>(arguments)...);
}

/*
 * CUB's algorithms, which take long to compile, are in cub_cuda.cu. As there,
 * d_temp NULL only stores in *temp_bytes what the call needs.
 */

/* That differ among keys below n, at least 1. */
static inline unsigned cuda_key_bits(uint64_t n)
{
    unsigned bits = 1;

    while (bits < 64 && 1ull << bits < n)
        bits++;
    return bits;
}

/* Stable sort of n < 2^32 pairs by bits [0, n_bits) of the keys. Here the temp
 * bytes are those of the pairs. */
int cuda_sort_pairs(struct device_cuda *cuda, struct device_pairs *pairs,
                    uint64_t n, unsigned n_bits, struct err *err) MUST_CHECK;
/* Each value becomes the sum of those before it. */
int cuda_exclusive_sum(struct device_cuda *cuda, uint64_t *d_values, uint64_t n,
                       void *d_temp, size_t *temp_bytes,
                       struct err *err) MUST_CHECK;

#endif
