/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_CUDA_RUNTIME_H
#define NEUROSHARD_TESTS_CUDA_RUNTIME_H

#include <cstddef>
#include <functional>

#include "emulated_kernel.h"
#include "emulated_types.h"

/*
 * A stand-in for the CUDA runtime that runs on the CPU. It lets machines
 * without a GPU test the unchanged .cu files, also under the sanitizers. The
 * times that it measures are meaningless.
 *
 * A stream is a queue. Queued work runs only when a call waits for the stream,
 * so buffers that are reused or freed too early produce wrong results. Fresh
 * memory is filled with 0xCB, freed memory with 0xDD.
 *
 *     EMULATOR_SEED=N       another order of threads and blocks
 *     EMULATOR_MEMORY=N     bytes of a device's memory (2 GiB)
 *     EMULATOR_DEVICES=N    number of GPUs (1)
 */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600
};
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

struct cudaUUID_t {
    char bytes[16];
};
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid; /* each process emulates its own GPUs */
    size_t totalGlobalMem;
    size_t sharedMemPerBlock, sharedMemPerBlockOptin;
    size_t sharedMemPerMultiprocessor;
    int regsPerBlock, regsPerMultiprocessor;
    int warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor;
    int maxThreadsDim[3], maxGridSize[3];
    int major, minor;
    int multiProcessorCount, l2CacheSize, persistingL2CacheMaxSize;
    int pciBusID, pciDeviceID, pciDomainID;
    int canMapHostMemory, memoryBusWidth, ECCEnabled;
};
enum cudaDeviceAttr {
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrL2CacheSize = 38
};
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDevice(int *ordinal);
cudaError_t cudaSetDevice(int ordinal);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int ordinal);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                   int ordinal);
cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int ordinal);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMemGetInfo(size_t *n_free, size_t *n_total);
#define cudaDeviceScheduleAuto 0u
#define cudaDeviceScheduleSpin 1u
cudaError_t cudaSetDeviceFlags(unsigned flags);

struct emulated_stream;
struct emulated_event;
typedef emulated_stream *cudaStream_t;
typedef emulated_event *cudaEvent_t;
#define cudaStreamDefault 0u
#define cudaStreamNonBlocking 1u
#define cudaEventDefault 0u
#define cudaEventBlockingSync 1u
#define cudaEventDisableTiming 2u
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = 0);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
#define cudaHostAllocDefault 0u
#define cudaHostAllocPortable 1u
#define cudaHostAllocMapped 2u
cudaError_t emulated_malloc(void **ptr, size_t n_bytes);
cudaError_t cudaFree(void *ptr);
cudaError_t emulated_host_alloc(void **ptr, size_t n_bytes);
cudaError_t cudaFreeHost(void *ptr);
cudaError_t emulated_host_pointer(void **d_ptr, void *ptr);
extern "C" cudaError_t cudaMemcpy(void *dst, const void *src, size_t n_bytes,
                                  cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n_bytes,
                            cudaMemcpyKind kind, cudaStream_t stream = 0);
cudaError_t cudaMemset(void *dst, int value, size_t n_bytes);
cudaError_t cudaMemsetAsync(void *dst, int value, size_t n_bytes,
                            cudaStream_t stream = 0);

template <typename T> cudaError_t cudaMalloc(T **ptr, size_t n_bytes)
{
    return emulated_malloc((void **)ptr, n_bytes);
}

template <typename T>
cudaError_t cudaHostAlloc(T **ptr, size_t n_bytes, unsigned)
{
    return emulated_host_alloc((void **)ptr, n_bytes);
}

template <typename T> cudaError_t cudaMallocHost(T **ptr, size_t n_bytes)
{
    return emulated_host_alloc((void **)ptr, n_bytes);
}

template <typename T>
cudaError_t cudaHostGetDevicePointer(T **d_ptr, void *ptr, unsigned)
{
    return emulated_host_pointer((void **)d_ptr, ptr);
}

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
cudaError_t emulated_set_attribute(const void *kernel,
                                   cudaFuncAttribute attribute, int value);
template <typename T>
cudaError_t cudaFuncSetAttribute(T *kernel, cudaFuncAttribute attribute,
                                 int value)
{
    return emulated_set_attribute((const void *)kernel, attribute, value);
}

/* Occupancy of a kernel that uses 32 registers. */
template <typename T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n_blocks, T,
                                                          int block_size,
                                                          size_t)
{
    *n_blocks = block_size > 0 && block_size <= 1024 ? 2048 / block_size : 0;
    return *n_blocks ? cudaSuccess : cudaErrorInvalidValue;
}

struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};
/* The first appends work to the stream's queue. The second does the same for
 * the work of a kernel. */
cudaError_t emulated_enqueue(cudaStream_t stream, std::function<void()> work);
cudaError_t emulated_enqueue_work(cudaStream_t stream,
                                  std::function<void()> work);
cudaError_t emulated_launch(const cudaLaunchConfig_t *config,
                            const void *kernel, std::function<void()> thread);

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config,
                               void (*kernel)(Parameters...),
                               Arguments &&...arguments)
{
    return [&](Parameters... values) {
        return emulated_launch(config, (const void *)kernel,
                               [=]() { kernel(values...); });
    }(std::forward<Arguments>(arguments)...);
}

#endif
