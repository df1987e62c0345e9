/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_CUB_RADIX_SORT_CUH
#define NEUROSHARD_TESTS_CUB_RADIX_SORT_CUH

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulated_phases.h"

namespace cub
{

template <typename T> struct DoubleBuffer {
    T *d_buffers[2];
    int selector;

    DoubleBuffer() : d_buffers{nullptr, nullptr}, selector(0)
    {
    }
    DoubleBuffer(T *d_current, T *d_alternate)
        : d_buffers{d_current, d_alternate}, selector(0)
    {
    }
    T *Current()
    {
        return d_buffers[selector];
    }
    T *Alternate()
    {
        return d_buffers[selector ^ 1];
    }
};

struct DeviceRadixSort {
    template <typename Key, typename Value, typename N>
    static cudaError_t
    SortPairs(void *d_temp, size_t &temp_bytes, DoubleBuffer<Key> &keys,
              DoubleBuffer<Value> &values, N n, int begin_bit = 0,
              int end_bit = sizeof(Key) * 8, cudaStream_t stream = 0)
    {
        const DoubleBuffer<Key> own_keys = keys;
        const DoubleBuffer<Value> own_values = values;
        int n_passes = (end_bit - begin_bit + 7) / 8;
        int to = keys.selector ^ (n_passes & 1);
        cudaError_t status;

        if (begin_bit < 0 || end_bit > (int)sizeof(Key) * 8 ||
            begin_bit > end_bit)
            return cudaErrorInvalidValue;
        status =
            emulated_phases(d_temp, temp_bytes,
                            emulated_temp_bytes((uint64_t)n), stream, [=]() {
                                sort_pairs(own_keys, own_values, (size_t)n,
                                           begin_bit, end_bit, to);
                            });
        if (d_temp && status == cudaSuccess)
            keys.selector = values.selector = to;
        return status;
    }

  private:
    template <typename Key, typename Value>
    static void sort_pairs(const DoubleBuffer<Key> &keys,
                           const DoubleBuffer<Value> &values, size_t n,
                           int begin_bit, int end_bit, int to)
    {
        int width = end_bit - begin_bit;
        Key mask =
            (Key)(width >= (int)sizeof(Key) * 8 ? ~(uint64_t)0
                                                : ((uint64_t)1 << width) - 1);
        std::vector<std::pair<Key, Value>> pairs(n);

        emulated_ticks += n * (unsigned)((width + 7) / 8);
        for (size_t i = 0; i < n; i++)
            pairs[i] = {keys.d_buffers[keys.selector][i],
                        values.d_buffers[values.selector][i]};
        if (width)
            std::stable_sort(pairs.begin(), pairs.end(),
                             [=](const std::pair<Key, Value> &a,
                                 const std::pair<Key, Value> &b) {
                                 return ((a.first >> begin_bit) & mask) <
                                        ((b.first >> begin_bit) & mask);
                             });
        for (int i = 0; i < 2; i++) {
            memset((void *)keys.d_buffers[i], 0xcb, n * sizeof(Key));
            memset((void *)values.d_buffers[i], 0xcb, n * sizeof(Value));
        }
        for (size_t i = 0; i < n; i++) {
            keys.d_buffers[to][i] = pairs[i].first;
            values.d_buffers[to][i] = pairs[i].second;
        }
    }
};

} // namespace cub

#endif
