/* SPDX-License-Identifier: MIT */
#include "cuda_runtime.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "emulator.h"

#define RUNTIME_VERSION 13000

/* A stream is a queue, and a call that waits for the stream runs the queued
 * work. The default stream is CUDA's legacy one: it waits for all streams
 * except the non-blocking ones. The emulator runs its work at once. */

struct emulated_stream {
    std::deque<std::function<void()>> queue;
    bool is_non_blocking;
};

/* State of an event. It outlives the event while a queue still has to record
 * it. */
struct event_state {
    emulated_stream *stream = nullptr; /* stream of the last record */
    uint64_t n_queued = 0, n_recorded = 0;
    double ms = 0;
};

struct emulated_event {
    std::shared_ptr<event_state> state;
    bool has_time;
};

static struct runtime {
    ~runtime()
    {
        if (emulator_is_empty())
            fprintf(stderr, "emulator: %" PRIu64 " launches\n", n_launches);
    }

    std::vector<emulated_stream *> streams;
    std::map<const void *, int> shared_limits;
    std::set<void *> host_memory;
    cudaError_t last_error;
    int ordinal;
    uint64_t n_launches;
} runtime;

static int n_devices()
{
    return (int)emulator_setting("EMULATOR_DEVICES", 1);
}

static cudaError_t fail(cudaError_t error)
{
    runtime.last_error = error;
    return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
        return "invalid resource handle";
    case cudaErrorNotReady:
        return "device not ready";
    }
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error)
{
    return cudaGetErrorString(error);
}

cudaError_t cudaGetLastError()
{
    cudaError_t error = runtime.last_error;

    runtime.last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError()
{
    return runtime.last_error;
}

/* Returns $EMULATOR_DRIVER, the CUDA version that the driver supports; 0 means
 * that there is no driver. */
cudaError_t cudaDriverGetVersion(int *version)
{
    *version = (int)emulator_setting("EMULATOR_DRIVER", RUNTIME_VERSION);
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = RUNTIME_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    int driver;

    cudaDriverGetVersion(&driver);
    if (driver < RUNTIME_VERSION)
        return fail(cudaErrorInsufficientDriver);
    *n = n_devices();
    return *n ? cudaSuccess : fail(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *ordinal)
{
    *ordinal = runtime.ordinal;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal)
{
    if (ordinal < 0 || ordinal >= n_devices())
        return fail(cudaErrorInvalidDevice);
    runtime.ordinal = ordinal;
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned)
{
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int ordinal)
{
    /* the process id makes the GPUs of each process distinct */
    const int64_t owner[2] = {getpid(), ordinal};
    cudaDeviceProp emulated = {};

    static_assert(sizeof owner == sizeof emulated.uuid.bytes, "16 bytes");
    if (ordinal < 0 || ordinal >= n_devices())
        return fail(cudaErrorInvalidDevice);
    snprintf(emulated.name, sizeof emulated.name, "Emulated GPU");
    memcpy(emulated.uuid.bytes, owner, sizeof owner);
    emulated.totalGlobalMem = emulated_memory_total();
    emulated.sharedMemPerBlock = 48 << 10;
    emulated.sharedMemPerBlockOptin = 227 << 10;
    emulated.sharedMemPerMultiprocessor = 228 << 10;
    emulated.regsPerBlock = emulated.regsPerMultiprocessor = 65536;
    emulated.warpSize = 32;
    emulated.maxThreadsPerBlock = 1024;
    emulated.maxThreadsPerMultiProcessor = 2048;
    emulated.maxThreadsDim[0] = emulated.maxThreadsDim[1] = 1024;
    emulated.maxThreadsDim[2] = 64;
    emulated.maxGridSize[0] = INT32_MAX;
    emulated.maxGridSize[1] = emulated.maxGridSize[2] = 65535;
    emulated.major = 9;
    emulated.multiProcessorCount = 2;
    emulated.l2CacheSize = 1 << 20;
    emulated.pciBusID = 1 + ordinal;
    emulated.canMapHostMemory = 1;
    *properties = emulated;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrMultiProcessorCount ? 2
             : attribute == cudaDevAttrL2CacheSize       ? 1 << 20
                                                         : 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int ordinal)
{
    snprintf(id, (size_t)size, "0000:%02x:00.0", 1 + ordinal);
    return cudaSuccess;
}

static double now_ms()
{
    return (double)emulated_globaltimer_ns() * 1e-6;
}

static void work_off_one(emulated_stream *stream)
{
    std::function<void()> work = std::move(stream->queue.front());

    stream->queue.pop_front();
    emulated_ticks += EMULATED_WORK_NS * EMULATED_TICKS_A_NS;
    work();
}

static void work_off(emulated_stream *stream)
{
    if (stream->queue.empty())
        return;
    emulated_memory_open();
    while (!stream->queue.empty())
        work_off_one(stream);
    emulated_memory_close();
}

static void work_off_blocking()
{
    for (emulated_stream *stream : runtime.streams)
        if (!stream->is_non_blocking)
            work_off(stream);
}

static void work_off_event(const std::shared_ptr<event_state> &event,
                           uint64_t record)
{
    emulated_memory_open();
    while (event->n_recorded < record)
        work_off_one(event->stream);
    emulated_memory_close();
}

static bool is_stream(emulated_stream *stream)
{
    return std::find(runtime.streams.begin(), runtime.streams.end(), stream) !=
           runtime.streams.end();
}

cudaError_t emulated_enqueue(cudaStream_t stream, std::function<void()> work)
{
    if (!stream) {
        work_off_blocking();
        emulated_memory_open();
        work();
        emulated_memory_close();
        return cudaSuccess;
    }
    if (!is_stream(stream))
        return fail(cudaErrorInvalidResourceHandle);
    stream->queue.push_back(std::move(work));
    return cudaSuccess;
}

cudaError_t emulated_enqueue_work(cudaStream_t stream,
                                  std::function<void()> work)
{
    if (emulator_is_empty())
        work = []() {};
    return emulated_enqueue(stream, std::move(work));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    *stream = new emulated_stream{{}, (flags & cudaStreamNonBlocking) != 0};
    runtime.streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!is_stream(stream))
        return fail(cudaErrorInvalidResourceHandle);
    work_off(stream);
    runtime.streams.erase(
        std::find(runtime.streams.begin(), runtime.streams.end(), stream));
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (!stream)
        work_off_blocking();
    else if (!is_stream(stream))
        return fail(cudaErrorInvalidResourceHandle);
    else
        work_off(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return stream && !stream->queue.empty() ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    for (emulated_stream *stream : runtime.streams)
        work_off(stream);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = new emulated_event{std::make_shared<event_state>(),
                                !(flags & cudaEventDisableTiming)};
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    std::shared_ptr<event_state> state = event->state;

    state->stream = stream;
    state->n_queued++;
    return emulated_enqueue(stream, [state]() {
        state->n_recorded++;
        state->ms = now_ms();
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    work_off_event(event->state, event->state->n_queued);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return event->state->n_recorded < event->state->n_queued ? cudaErrorNotReady
                                                             : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    if (!from->has_time || !to->has_time || !from->state->n_queued ||
        !to->state->n_queued)
        return fail(cudaErrorInvalidResourceHandle);
    if (cudaEventQuery(from) || cudaEventQuery(to))
        return fail(cudaErrorNotReady);
    *ms = (float)(to->state->ms - from->state->ms);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *n_free, size_t *n_total)
{
    *n_total = std::max(emulated_memory_total(), emulated_memory_used());
    *n_free = *n_total - emulated_memory_used();
    return cudaSuccess;
}

cudaError_t emulated_malloc(void **ptr, size_t n_bytes)
{
    *ptr = n_bytes ? emulated_memory_take(n_bytes) : nullptr;
    return *ptr || !n_bytes ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *ptr)
{
    cudaDeviceSynchronize();
    if (ptr && !emulated_memory_give(ptr))
        return fail(cudaErrorInvalidValue);
    return cudaSuccess;
}

cudaError_t emulated_host_alloc(void **ptr, size_t n_bytes)
{
    if (posix_memalign(ptr, 4096, n_bytes))
        return fail(cudaErrorMemoryAllocation);
    memset(*ptr, 0xcb, n_bytes);
    runtime.host_memory.insert(*ptr);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *ptr)
{
    cudaDeviceSynchronize();
    if (ptr && !runtime.host_memory.erase(ptr))
        return fail(cudaErrorInvalidValue);
    free(ptr);
    return cudaSuccess;
}

cudaError_t emulated_host_pointer(void **d_ptr, void *ptr)
{
    *d_ptr = ptr;
    return cudaSuccess;
}

static bool are_where_said(const void *dst, const void *src, size_t n_bytes,
                           cudaMemcpyKind kind)
{
    bool to_device = emulated_memory_holds(dst, n_bytes);
    bool from_device = emulated_memory_holds(src, n_bytes);

    switch (kind) {
    case cudaMemcpyHostToHost:
        return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
        return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
        return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
        return to_device && from_device;
    case cudaMemcpyDefault:
        return true;
    }
    return false;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n_bytes,
                            cudaMemcpyKind kind, cudaStream_t stream)
{
    if (!n_bytes)
        return cudaSuccess;
    if (!are_where_said(dst, src, n_bytes, kind))
        return fail(cudaErrorInvalidValue);
    return emulated_enqueue(stream, [=]() { memcpy(dst, src, n_bytes); });
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t n_bytes,
                       cudaMemcpyKind kind)
{
    return cudaMemcpyAsync(dst, src, n_bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t n_bytes,
                            cudaStream_t stream)
{
    if (n_bytes && !emulated_memory_holds(dst, n_bytes))
        return fail(cudaErrorInvalidValue);
    return emulated_enqueue_work(stream,
                                 [=]() { memset(dst, value, n_bytes); });
}

cudaError_t cudaMemset(void *dst, int value, size_t n_bytes)
{
    return cudaMemsetAsync(dst, value, n_bytes, nullptr);
}

cudaError_t emulated_set_attribute(const void *kernel,
                                   cudaFuncAttribute attribute, int value)
{
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return cudaSuccess;
    if (value < 0 || value > 227 << 10)
        return fail(cudaErrorInvalidValue);
    runtime.shared_limits[kernel] = value;
    return cudaSuccess;
}

cudaError_t emulated_launch(const cudaLaunchConfig_t *config,
                            const void *kernel, std::function<void()> thread)
{
    dim3 grid = config->gridDim, block = config->blockDim;
    size_t shared_bytes = config->dynamicSmemBytes, limit = 48 << 10;
    auto raised = runtime.shared_limits.find(kernel);

    if (raised != runtime.shared_limits.end() && raised->second > 48 << 10)
        limit = (size_t)raised->second;
    if (!grid.x || !grid.y || !grid.z || grid.x > INT32_MAX || grid.y > 65535 ||
        grid.z > 65535 || !block.x || !block.y || !block.z || block.z > 64 ||
        block.x > 1024 || block.y > 1024 || block.x * block.y * block.z > 1024)
        return fail(cudaErrorInvalidConfiguration);
    if (shared_bytes > limit)
        return fail(cudaErrorInvalidValue);
    runtime.n_launches++;
    return emulated_enqueue_work(config->stream, [=]() {
        emulate_grid(grid, block, shared_bytes, thread);
    });
}
