/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CUDA_PRIVATE_CUH
#define NEUROSHARD_DEVICE_CUDA_PRIVATE_CUH

#include "device/cuda_hardware.cuh"
#include "device/device_ops.h"

#include <cuda_runtime.h>

/* Declarations shared by the files of the CUDA body. All work of a device goes
 * through one CUDA stream, in order. If queued work fails, the error is
 * reported by the next function that waits for the GPU. */

struct hold;
struct nvml;

struct device_cuda {
    struct device base;
    int ordinal;
    cudaStream_t stream;               /* owned */
    cudaEvent_t marks[DEVICE_N_MARKS]; /* owned */
    unsigned n_sms;
    /* Memory that device_flush reads, at least twice the size of the last-level
     * cache; owned. */
    void *d_flush;
    size_t flush_bytes;
    /* One word of device memory for results that nobody reads. Kernels store to
     * it so that the compiler does not remove the computation. Owned. */
    unsigned *d_sink;
    /* Host memory that is mapped into the GPU (device_hold). `hold` is its
     * address on the host, `d_hold` its address on the GPU. Owned. */
    struct hold *hold, *d_hold;
    unsigned n_holds; /* number of holds so far; the ticket of the last hold */
    bool is_held;
    bool never_holds; /* set by NEUROSHARD_NO_HOLD, see neuroshard(1) */
    double held_since_ms;
    struct nvml *nvml; /* owned; NULL if NVML is missing */
    /* Temporary buffer for queued work; later queued work may use it again. The
     * buffer is kept, because allocating and freeing memory wait for the
     * GPU. */
    struct device_region workspace;
};

static inline struct device_cuda *device_cuda_of(struct device *device)
{
    return (struct device_cuda *)device;
}

/* Checks the status that a CUDA call returned. Returns 0 if the status is a
 * success. Otherwise returns -1 and sets ERR_DEVICE with the text of the call
 * and CUDA's message. */
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

/* Returns the number of blocks of CUDA_BLOCK threads to launch for n_threads
 * threads. It is the number of blocks that all multiprocessors hold at the same
 * time, or fewer if fewer are enough for n_threads, but at least 1. */
#define CUDA_BLOCK 256u
unsigned cuda_n_blocks(const struct device_cuda *cuda, uint64_t n_threads);
/* Two functions for kernels in which the threads of the grid share a list of
 * items. Each thread starts with item grid_first() and then advances by
 * grid_step() items. */
static __device__ inline uint64_t grid_first(void)
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline uint64_t grid_step(void)
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* Launches a kernel with as many blocks as cuda_n_blocks returns. The threads
 * share n items: each starts at grid_first() and advances by grid_step(). */
template <typename... Parameters, typename... Arguments>
static inline cudaError_t launch_over(const struct device_cuda *cuda,
                                      uint64_t n, void (*kernel)(Parameters...),
                                      Arguments &&...arguments)
{
    return launch(kernel, cuda_n_blocks(cuda, n), CUDA_BLOCK, 0, cuda->stream,
                  static_cast<Arguments &&>(arguments)...);
}

/*
 * Algorithms of the CUB library. They take long to compile and are therefore in
 * a file of their own, cub_cuda.cu. A call with d_temp NULL does not run the
 * algorithm. It only stores in *temp_bytes the size of the scratch memory that
 * the algorithm needs, as in CUB.
 */

/* Returns the number of low bits in which keys below n can differ, at least
 * 1. */
static inline unsigned cuda_key_bits(uint64_t n)
{
    unsigned bits = 1;

    while (bits < 64 && 1ull << bits < n)
        bits++;
    return bits;
}

/* Sorts n < 2^32 pairs by bits [0, n_bits) of their keys. The sort is stable.
 * The scratch memory is given by d_temp and temp_bytes in `pairs`. */
int cuda_sort_pairs(struct device_cuda *cuda, struct device_pairs *pairs,
                    uint64_t n, unsigned n_bits, struct err *err) MUST_CHECK;
/* Replaces each of n values by the sum of the values before it. */
int cuda_exclusive_sum(struct device_cuda *cuda, uint64_t *d_values, uint64_t n,
                       void *d_temp, size_t *temp_bytes,
                       struct err *err) MUST_CHECK;

#endif
