/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_DEVICE_CPU_H
#define NEUROSHARD_DEVICE_DEVICE_CPU_H

#include "base/parallel.h"
#include "device/cpu_kernels.h"
#include "device/device_ops.h"

/* What the parts of the CPU body share. */

struct device_cpu {
    struct device base;
    struct pool *pool; /* owned */
    const struct cpu_kernels *kernels;
    double marks_ms[DEVICE_N_MARKS];
};

static inline struct device_cpu *device_cpu(struct device *device)
{
    return (struct device_cpu *)device;
}

/* Of a radix sort: counts[n_chunks][stride], how often each of n_digits is in
 * each chunk, become the places of their first, by digit, then by chunk. */
void cpu_counts_to_places(uint32_t *counts, size_t n_chunks, size_t stride,
                          uint32_t n_digits);

#endif
