/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <string>
#include <vector>

#include "cuda_runtime.h"

/* Tests that the emulator detects mistakes which a real GPU may forgive. */

static cudaStream_t stream;

template <typename... Parameters, typename... Arguments>
static cudaError_t launch(void (*kernel)(Parameters...), unsigned n_blocks,
                          unsigned n_threads, Arguments... arguments)
{
    cudaLaunchConfig_t config = {};

    config.gridDim = n_blocks;
    config.blockDim = n_threads;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <typename T> static T *on_device(const std::vector<T> &values)
{
    T *d_values;

    cudaMalloc(&d_values, values.size() * sizeof(T));
    cudaMemcpy(d_values, values.data(), values.size() * sizeof(T),
               cudaMemcpyHostToDevice);
    return d_values;
}

template <typename T> static std::vector<T> on_host(const T *d_values, size_t n)
{
    std::vector<T> values(n);

    cudaMemcpyAsync(values.data(), d_values, n * sizeof(T),
                    cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return values;
}

/* Runs f in a child. Returns the child's last message if it died, or "" if it
 * survived. */
template <typename F> static std::string last_words(F f)
{
    char text[400] = "";
    ssize_t n, len = 0;
    int ends[2], status;
    pid_t child;

    if (pipe(ends))
        return "";
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        f();
        _exit(0);
    }
    close(ends[1]);
    while (len < (ssize_t)sizeof text - 1 &&
           (n = read(ends[0], text + len, sizeof text - 1 - (size_t)len)) > 0)
        len += n;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return "";
    return *text ? text : "killed";
}

__global__ void sum_kernel(const unsigned *values, unsigned n, unsigned *sum)
{
    __shared__ unsigned sums[8];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned own = i < n ? values[i] : 0;

    for (unsigned by = 16; by; by /= 2)
        own += __shfl_down_sync(0xffffffff, own, by);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned warp = 1; warp < blockDim.x / 32; warp++)
            own += sums[warp];
        atomicAdd(sum, own);
    }
}

static void test_sum()
{
    std::vector<unsigned> values(100003);
    unsigned want = 0, *d_values, *d_sum;

    for (size_t i = 0; i < values.size(); i++)
        want += values[i] = (unsigned)(i * i % 1009);
    d_values = on_device(values);
    d_sum = on_device(std::vector<unsigned>{0});
    launch(sum_kernel, 391, 256, d_values, 100003u, d_sum);
    is_i64(on_host(d_sum, 1)[0], want, "a sum over warps, blocks, grid");
    cudaFree(d_values);
    cudaFree(d_sum);
}

__global__ void race_kernel(unsigned *seen)
{
    __shared__ unsigned slots[64];

    slots[threadIdx.x] = blockIdx.x + 1;
    if (slots[(threadIdx.x + 1) % 64] == blockIdx.x + 1)
        atomicAdd(&seen[blockIdx.x], 1u);
}

static void test_race()
{
    unsigned *d_seen = on_device(std::vector<unsigned>(20, 0));
    bool differs = false;

    launch(race_kernel, 20, 64, d_seen);
    for (unsigned seen : on_host(d_seen, 20))
        differs |= seen != on_host(d_seen, 20)[0];
    ok(differs, "a missing barrier shows");
    cudaFree(d_seen);
}

__global__ void stuck_kernel(int how)
{
    unsigned lane = threadIdx.x % 32;

    if (how == 0) { /* one thread of a warp waits elsewhere */
        if (threadIdx.x == 40)
            __syncthreads();
        else
            __syncwarp();
    } else if (how == 1 && lane != 3) {
        __syncwarp();
    } else if (how == 2) {
        __shfl_sync(0xffff, lane, 0);
    } else if (how == 3 && lane < 16) {
        __shfl_sync(0xffff, lane, 20);
    }
}

static void is_said(const std::string &words, const char *want,
                    const char *name)
{
    if (!ok(words.find(want) != std::string::npos, "%s", name))
        printf("# said '%s'\n", words.c_str());
}

static void test_deadlocks()
{
    static const char *const WORDS[] = {
        "deadlock: waits for lane 8 of mask ffffffff, which is elsewhere",
        "mask ffffffff names lane 3, which has returned",
        "mask 0000ffff lacks the lane that calls",
        "a shuffle reads lane 20, which is not in mask 0000ffff",
    };

    for (int how = 0; how < 4; how++)
        is_said(last_words([=] {
                    launch(stuck_kernel, 1, 64, how);
                    cudaStreamSynchronize(stream);
                }),
                WORDS[how], WORDS[how]);
}

__global__ void touch_kernel(unsigned *data, unsigned at)
{
    data[at] = 1;
}

static void test_memory()
{
    unsigned *d_data;
    size_t n_free, n_total;

    cudaMalloc(&d_data, 4096);
    is_i64(on_host(d_data, 1024)[1023], 0xcbcbcbcb, "memory is not zeroed");
    ok(last_words([=] {
           launch(touch_kernel, 1, 1, d_data, 1024u);
           cudaStreamSynchronize(stream);
       }) != "",
       "a kernel that writes behind its memory dies");
    ok(last_words([=] {
           cudaFree(d_data);
           launch(touch_kernel, 1, 1, d_data, 0u);
           cudaStreamSynchronize(stream);
       }) != "",
       "and one that writes to freed memory");
    is_i64(cudaMemcpy(d_data, d_data + 512, 4096, cudaMemcpyDeviceToDevice),
           cudaErrorInvalidValue, "a copy from behind is refused");
    is_i64(cudaMemset(&n_free, 0, 8), cudaErrorInvalidValue,
           "memory of the host is not the device's");
    is_i64(cudaFree(d_data + 1), cudaErrorInvalidValue, "nor is a middle free");
    is_i64(cudaFree(d_data), cudaSuccess, "free");
    cudaMemGetInfo(&n_free, &n_total);
    is_i64((int64_t)n_free, (int64_t)n_total, "all of it");
    is_i64(cudaMalloc(&d_data, n_total + 1), cudaErrorMemoryAllocation,
           "more than there is");
}

static void test_queue()
{
    std::vector<unsigned> values = {1, 2, 3};
    unsigned *d_values = on_device(values);
    cudaEvent_t from, to;
    float ms = -1;

    cudaEventCreate(&from);
    cudaEventCreate(&to);
    cudaEventRecord(from, stream);
    cudaMemcpyAsync(values.data(), d_values + 1, 4, cudaMemcpyDeviceToHost,
                    stream);
    cudaMemsetAsync(d_values, 0, 12, stream);
    cudaEventRecord(to, stream);
    is_i64(values[0], 1, "nothing happens before somebody waits");
    is_i64(cudaStreamQuery(stream), cudaErrorNotReady, "the stream is busy");
    is_i64(cudaEventElapsedTime(&ms, from, to), cudaErrorNotReady,
           "no time yet");
    cudaEventSynchronize(from);
    is_i64(values[0], 1, "no more than was waited for");
    cudaEventSynchronize(to);
    is_i64(values[0], 2, "then everything, in order");
    is_i64(cudaEventElapsedTime(&ms, from, to), cudaSuccess, "a time");
    ok(ms >= 0, "forwards");
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    cudaFree(d_values);
}

static void test_launches()
{
    cudaLaunchConfig_t config = {};

    is_i64(launch(touch_kernel, 0, 1, nullptr, 0u),
           cudaErrorInvalidConfiguration, "an empty grid");
    is_i64(launch(touch_kernel, 1, 1025, nullptr, 0u),
           cudaErrorInvalidConfiguration, "a block too large");
    config.gridDim = config.blockDim = 1;
    config.dynamicSmemBytes = 50 << 10;
    is_i64(cudaLaunchKernelEx(&config, touch_kernel, nullptr, 0u),
           cudaErrorInvalidValue, "too much shared memory");
    is_i64(cudaGetLastError(), cudaErrorInvalidValue, "is remembered");
    is_i64(cudaGetLastError(), cudaSuccess, "until it is asked for");
}

static void test_sort()
{
    std::vector<unsigned> keys = {0x103, 0x201, 0x002, 0x301, 0x003, 0x401};
    std::vector<unsigned> values = {0, 1, 2, 3, 4, 5};
    const unsigned want[] = {1, 3, 5, 2, 0, 4};
    unsigned *d_keys[2] = {on_device(keys), on_device(keys)};
    unsigned *d_values[2] = {on_device(values), on_device(values)};
    cub::DoubleBuffer<unsigned> key_buffer(d_keys[0], d_keys[1]);
    cub::DoubleBuffer<unsigned> value_buffer(d_values[0], d_values[1]);
    size_t temp_bytes = 0;
    void *d_temp;

    cub::DeviceRadixSort::SortPairs(nullptr, temp_bytes, key_buffer,
                                    value_buffer, 6, 0, 8, stream);
    cudaMalloc(&d_temp, temp_bytes);
    temp_bytes--;
    is_i64(cub::DeviceRadixSort::SortPairs(d_temp, temp_bytes, key_buffer,
                                           value_buffer, 6, 0, 8, stream),
           cudaErrorInvalidValue, "too little scratch memory is refused");
    is_i64(value_buffer.selector, 0, "and nothing sorted");
    temp_bytes++;
    cub::DeviceRadixSort::SortPairs(d_temp, temp_bytes, key_buffer,
                                    value_buffer, 6, 0, 8, stream);
    ok(on_host(value_buffer.Current(), 6) ==
           std::vector<unsigned>(want, want + 6),
       "stable, by the bits that were asked for");
    is_i64(on_host(value_buffer.Alternate(), 1)[0], 0xcbcbcbcb,
           "the other buffer is of no use");
    cudaFree(d_temp);
    for (int i = 0; i < 2; i++) {
        cudaFree(d_keys[i]);
        cudaFree(d_values[i]);
    }
}

int main()
{
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    test_sum();
    test_race();
    test_deadlocks();
    test_memory();
    test_queue();
    test_launches();
    test_sort();
    cudaStreamDestroy(stream);
    return tap_done();
}
