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

#endif
