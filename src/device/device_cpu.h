/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_DEVICE_CPU_H
#define NEUROSHARD_DEVICE_DEVICE_CPU_H

#include "base/parallel.h"
#include "device/cpu_kernels.h"
#include "device/device_ops.h"

/* Declarations shared by the files of the CPU body. */

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

/* Turns the counts of a radix sort into places in the output. At the start,
 * counts[n_chunks][stride] holds how often each of n_digits digits occurs in
 * each chunk. Each count is replaced by the place of the chunk's first element
 * with this digit. Places are ordered by digit, then by chunk. */
void cpu_counts_to_places(uint32_t *counts, size_t n_chunks, size_t stride,
                          uint32_t n_digits);

#endif
