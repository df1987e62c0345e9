/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/mem.h"
#include "device/cuda_private.cuh"
#include "device/nvml.h"
#include "device/stream_math.h"

#include <cuda_fp16.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLD_NS 10000000000ull
#define DELAY_NS 200000ull
/* device_flush reads this many times the size of the last-level cache. Once the
 * size would not be enough, because some of the reads hit the cache while old
 * data are still being replaced. */
#define FLUSH_CACHES 4

int cuda_check(cudaError_t status, const char *call, struct err *err)
{
    if (status == cudaSuccess)
        return 0;
    cudaGetLastError(); /* clears the error, if it can be cleared */
    return err_set(err, ERR_DEVICE, "%s failed: %s", call,
                   cudaGetErrorString(status));
}

unsigned cuda_n_blocks(const struct device_cuda *cuda, uint64_t n_threads)
{
    uint64_t most = cuda->n_sms * (2048ull / CUDA_BLOCK);
    uint64_t needed = (n_threads + CUDA_BLOCK - 1) / CUDA_BLOCK;

    return (unsigned)max_u64(min_u64(needed, most), 1);
}

/* Host memory that the GPU reads to know whether held work may start. Each hold
 * has a number, its ticket. The work behind it starts when `released` reaches
 * its ticket, or after a time limit. */
struct hold {
    volatile unsigned released;
};

static __global__ void hold_kernel(const struct hold *hold, unsigned ticket,
                                   unsigned long long most_ns)
{
    unsigned long long begin = globaltimer_ns();

    while ((int)(hold->released - ticket) < 0 &&
           globaltimer_ns() - begin < most_ns)
        __nanosleep(100);
}

/* Lets the GPU start held work. Every function that waits for the GPU must call
 * this function first. Otherwise it would wait forever. */
static void let_go(struct device_cuda *cuda)
{
    cuda->is_held = false;
    if (cuda->hold)
        cuda->hold->released = cuda->n_holds;
}

static int cuda_hold(struct device *device, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);

    let_go(cuda);
    if (cuda->never_holds)
        return 0;
    cuda->n_holds++;
    if (CUDA(launch(hold_kernel, 1, 1, 0, cuda->stream, cuda->d_hold,
                    cuda->n_holds, HOLD_NS),
             err))
        return -1;
    cuda->is_held = true;
    cuda->held_since_ms = clock_ms();
    return 0;
}

/* Queues a hold kernel with a ticket that is never released. The kernel
 * therefore ends by its time limit. */
static int cuda_delay(struct device *device, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);

    if (cuda->never_holds)
        return 0;
    return CUDA(launch(hold_kernel, 1, 1, 0, cuda->stream, cuda->d_hold,
                       cuda->n_holds + 1, DELAY_NS),
                err);
}

static int cuda_release(struct device *device, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);
    bool is_late = cuda->is_held &&
                   clock_ms() - cuda->held_since_ms > HOLD_NS * 1e-6 - 1000;

    let_go(cuda);
    if (is_late)
        return err_set(err, ERR_DEVICE,
                       "a timed section on '%s' was not ready within 10 s",
                       device->facts.name);
    return 0;
}

static int cuda_wait(struct device *device, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);

    let_go(cuda);
    return CUDA(cudaStreamSynchronize(cuda->stream), err);
}

static int cuda_mark(struct device *device, unsigned slot, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);

    return CUDA(cudaEventRecord(cuda->marks[slot], cuda->stream), err);
}

static int cuda_elapsed(struct device *device, unsigned from, unsigned to,
                        double *ms, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);
    float elapsed_ms;

    let_go(cuda);
    if (CUDA(cudaEventSynchronize(cuda->marks[from]), err) ||
        CUDA(cudaEventSynchronize(cuda->marks[to]), err) ||
        CUDA(cudaEventElapsedTime(&elapsed_ms, cuda->marks[from],
                                  cuda->marks[to]),
             err))
        return -1;
    *ms = (double)elapsed_ms;
    return 0;
}

static __global__ void flush_kernel(const uint4 *data, uint64_t n,
                                    unsigned *sink)
{
    unsigned sum = 0;

    for (uint64_t i = grid_first(); i < n; i += grid_step()) {
        uint4 part = data[i];

        sum += part.x ^ part.y ^ part.z ^ part.w;
    }
    if (sum == 1) /* never true, but nvcc cannot know it */
        *sink = sum;
}

static int cuda_flush(struct device *device, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);
    uint64_t n = cuda->flush_bytes / sizeof(uint4);

    return CUDA(launch_over(cuda, n, flush_kernel, (const uint4 *)cuda->d_flush,
                            n, cuda->d_sink),
                err);
}

static uint64_t cuda_free_bytes(const struct device *device)
{
    size_t n_free = 0, n_total = 0;

    (void)device;
    if (cudaMemGetInfo(&n_free, &n_total) != cudaSuccess)
        return 0;
    return n_free;
}

static int cuda_alloc(struct device *device, void **d_ptr, size_t n_bytes,
                      struct err *err)
{
    cudaError_t status;

    let_go(device_cuda_of(device));
    status = cudaMalloc(d_ptr, n_bytes ? n_bytes : 1);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return device_is_full(device, n_bytes, err);
    }
    return cuda_check(status, "cudaMalloc", err);
}

static void cuda_free(struct device *device, void *d_ptr, size_t n_bytes)
{
    (void)n_bytes;
    let_go(device_cuda_of(device));
    cudaFree(d_ptr);
}

static int cuda_transfer(struct device *device, void *dst, const void *src,
                         size_t n_bytes, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);

    let_go(cuda);
    if (CUDA(
            cudaMemcpyAsync(dst, src, n_bytes, cudaMemcpyDefault, cuda->stream),
            err))
        return -1;
    return cuda_wait(device, err);
}

/* Largest number of copies per launch. The list of copies must fit the 4 KiB
 * that the arguments of a kernel can have. */
#define MAX_COPIES 128
struct copy_list {
    struct device_copy copies[MAX_COPIES];
};

template <typename Word>
static __device__ void copy_words(const struct device_copy *copy)
{
    const Word *src = (const Word *)copy->d_src;
    Word *dst = (Word *)copy->d_dst;
    uint64_t n = copy->n_bytes / sizeof(Word);

    for (uint64_t i = grid_first(); i < n; i += grid_step())
        dst[i] = src[i];
}

/* Executes copy y in row y of the grid. Uses the longest words that its size
 * and its addresses allow. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    copy_kernel(const struct copy_list list)
{
    const struct device_copy *copy = &list.copies[blockIdx.y];
    uintptr_t bits = (uintptr_t)copy->d_src | (uintptr_t)copy->d_dst |
                     (uintptr_t)copy->n_bytes;

    if (bits % sizeof(uint4) == 0)
        copy_words<uint4>(copy);
    else if (bits % sizeof(uint32_t) == 0)
        copy_words<uint32_t>(copy);
    else
        copy_words<uint8_t>(copy);
}

static int cuda_copy(struct device *device, const struct device_copy *copies,
                     size_t n_copies, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);

    for (size_t done = 0; done < n_copies; done += MAX_COPIES) {
        struct copy_list list = {};
        size_t n = min_u64(n_copies - done, MAX_COPIES), longest = 0;
        dim3 grid;

        for (size_t i = 0; i < n; i++) {
            list.copies[i] = copies[done + i];
            longest = max_u64(longest, list.copies[i].n_bytes);
        }
        if (!longest)
            continue;
        grid = dim3(cuda_n_blocks(cuda, longest / sizeof(uint4)), (unsigned)n);
        if (CUDA(launch(copy_kernel, grid, CUDA_BLOCK, 0, cuda->stream, list),
                 err))
            return -1;
    }
    return 0;
}

template <typename T>
static __global__ void fill_kernel(T *dst, const struct fill_window window)
{
    uint64_t n = window.n_rows * window.width;
    bool is_dense = window.stride == window.width;

    for (uint64_t i = grid_first(); i < n; i += grid_step()) {
        uint64_t pos = i;

        if (!is_dense)
            pos = i / window.width * window.stride + i % window.width;
        dst[i] = T(stream_fill_value(window.seed, window.first + pos));
    }
}

static int cuda_fill(struct device *device, void *d_dst,
                     const struct fill_window *window, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);
    uint64_t n = window->n_rows * window->width;

    return CUDA(
        window->precision == PRECISION_FP32
            ? launch_over(cuda, n, fill_kernel<float>, (float *)d_dst, *window)
            : launch_over(cuda, n, fill_kernel<__half>, (__half *)d_dst,
                          *window),
        err);
}

static __global__ void add_kernel(float *sum, const float *part, uint64_t n)
{
    for (uint64_t i = grid_first(); i < n; i += grid_step())
        sum[i] += part[i];
}

static int cuda_add(struct device *device, float *d_sum, const float *d_part,
                    uint64_t n, struct err *err)
{
    return CUDA(
        launch_over(device_cuda_of(device), n, add_kernel, d_sum, d_part, n),
        err);
}

static void cuda_health(const struct device *device,
                        struct sample_health *health)
{
    const struct device_cuda *cuda = (const struct device_cuda *)device;

    if (cuda->nvml)
        nvml_health(cuda->nvml, health);
}

/* Closes a device. This may be a device that device_open_cuda has opened
 * only halfway. */
static void cuda_close(struct device *device)
{
    struct device_cuda *cuda = device_cuda_of(device);

    let_go(cuda);
    if (cuda->stream) {
        cudaStreamSynchronize(cuda->stream);
        cudaStreamDestroy(cuda->stream);
    }
    for (unsigned i = 0; i < DEVICE_N_MARKS; i++)
        if (cuda->marks[i])
            cudaEventDestroy(cuda->marks[i]);
    cudaFree(cuda->d_flush);
    cudaFree(cuda->d_sink);
    cudaFreeHost(cuda->hold);
    cudaGetLastError();
    nvml_close(cuda->nvml);
    mem_free(cuda);
}

/* The functions of the CUDA body. C++17 has no designated initialisers, so they
 * must be in the order of struct device_ops. */
static const struct device_ops CUDA_OPS = {
    cuda_close,
    cuda_free_bytes,
    cuda_alloc,
    cuda_free,
    cuda_transfer,
    cuda_copy,
    cuda_fill,
    cuda_add,
    elementwise_cuda_run,
    cuda_wait,
    cuda_hold,
    cuda_release,
    cuda_delay,
    cuda_flush,
    cuda_health,
    probe_cuda_scratch,
    probe_cuda_run,
    stream_cuda_draw,
    stream_cuda_measure,
    cuda_mark,
    cuda_elapsed,
    lookup_cuda_open,
    lookup_cuda_close,
    lookup_cuda_forward,
    lookup_cuda_backward,
    lookup_cuda_apply_dense,
};

/* Counts the GPUs. Before, it makes CUDA load all kernels at once and not at
 * their first launch, regardless of the setting in the environment. Loading a
 * kernel during a timed section could block forever: it may wait for the GPU,
 * and the GPU may wait for device_release. */
static cudaError_t count_devices(int *n)
{
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    return cudaGetDeviceCount(n);
}

unsigned device_count_cuda(void)
{
    int n = 0;

    if (count_devices(&n) != cudaSuccess) {
        cudaGetLastError(); /* no driver or no GPU; this is no error here */
        return 0;
    }
    return n > 0 ? (unsigned)n : 0;
}

/* Stores the facts about the device (struct device_facts). NVML, the driver's
 * management library, may be missing. */
static int describe(struct device_cuda *cuda, struct err *err)
{
    struct cudaDeviceProp properties;
    char pci_bus_id[32];
    int runtime = 0;

    if (CUDA(cudaRuntimeGetVersion(&runtime), err) ||
        CUDA(cudaGetDeviceProperties(&properties, cuda->ordinal), err) ||
        CUDA(
            cudaDeviceGetPCIBusId(pci_bus_id, sizeof pci_bus_id, cuda->ordinal),
            err))
        return -1;
    snprintf(cuda->base.facts.name, sizeof cuda->base.facts.name, "cuda:%.120s",
             properties.name);
    snprintf(cuda->base.facts.isa, sizeof cuda->base.facts.isa, "sm_%d%d",
             properties.major, properties.minor);
    static_assert(sizeof properties.uuid == sizeof cuda->base.identity,
                  "a UUID has 16 bytes");
    memcpy(cuda->base.identity, &properties.uuid, sizeof cuda->base.identity);
    cuda->n_sms = (unsigned)properties.multiProcessorCount;
    cuda->flush_bytes = FLUSH_CACHES * (size_t)properties.l2CacheSize;
    snprintf(cuda->base.facts.cuda, sizeof cuda->base.facts.cuda, "%d.%d",
             runtime / 1000, runtime % 1000 / 10);
    cuda->nvml = nvml_open(NVML_LIBRARY, pci_bus_id);
    if (cuda->nvml)
        nvml_driver(cuda->nvml, cuda->base.facts.driver,
                    sizeof cuda->base.facts.driver);
    return 0;
}

static int open_all(struct device_cuda *cuda, struct err *err)
{
    if (CUDA(cudaSetDevice(cuda->ordinal), err) || describe(cuda, err) ||
        CUDA(cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking),
             err))
        return -1;
    cuda->base.queue = cuda->stream;
    for (unsigned i = 0; i < DEVICE_N_MARKS; i++)
        if (CUDA(cudaEventCreate(&cuda->marks[i]), err))
            return -1;
    if (CUDA(
            cudaHostAlloc(&cuda->hold, sizeof *cuda->hold, cudaHostAllocMapped),
            err) ||
        CUDA(cudaHostGetDevicePointer(&cuda->d_hold, cuda->hold, 0), err))
        return -1;
    cuda->hold->released = 0;
    cuda->never_holds = getenv("NEUROSHARD_NO_HOLD") != NULL;
    if (CUDA(cudaMalloc(&cuda->d_sink, sizeof *cuda->d_sink), err) ||
        CUDA(cudaMalloc(&cuda->d_flush, cuda->flush_bytes), err) ||
        CUDA(cudaMemsetAsync(cuda->d_flush, 0, cuda->flush_bytes, cuda->stream),
             err))
        return -1;
    /* The first kernel launch. It fails if this build has no code for this
     * GPU. */
    return cuda_flush(&cuda->base, err) || cuda_wait(&cuda->base, err) ? -1 : 0;
}

/* Checks that GPU number `ordinal` exists. If not, sets the error with the
 * reason. */
static int find_gpu(unsigned ordinal, struct err *err)
{
    int n = 0, driver = 0, runtime = 0;
    cudaError_t status = count_devices(&n);

    if (status == cudaSuccess && ordinal < (unsigned)n)
        return 0;
    if (status == cudaSuccess)
        return err_set(err, ERR_DEVICE, "this machine has only %d", n);
    cudaGetLastError();
    if (status != cudaErrorInsufficientDriver)
        return err_set(err, ERR_DEVICE, "%s", cudaGetErrorString(status));
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (!driver)
        return err_set(err, ERR_DEVICE,
                       "this machine has no working NVIDIA driver");
    /* The GPU's driver is older than the CUDA version with which this program
     * was built. */
    return err_set(
        err, ERR_DEVICE,
        "its driver supports CUDA up to %d.%d, but this program needs %d.%d: "
        "install a newer driver, or build with an older CUDA toolkit",
        driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

int device_open_cuda(struct device **out, unsigned ordinal, unsigned n_threads,
                     struct err *err)
{
    struct device_cuda *cuda = (struct device_cuda *)mem_alloc(1, sizeof *cuda);

    (void)n_threads;
    cuda->base.ops = &CUDA_OPS;
    cuda->base.kind = DEVICE_CUDA;
    cuda->ordinal = (int)ordinal;
    if (find_gpu(ordinal, err) || open_all(cuda, err)) {
        cuda_close(&cuda->base);
        return err_prefix(err, "cannot open GPU %u", ordinal);
    }
    *out = &cuda->base;
    return 0;
}
