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

probe_scratch_fn probe_cpu_scratch;
probe_run_fn probe_cpu_run;
stream_draw_fn stream_cpu_draw;
stream_measure_fn stream_cpu_measure;
lookup_open_fn lookup_cpu_open;
lookup_close_fn lookup_cpu_close;
lookup_forward_fn lookup_cpu_forward;
lookup_backward_fn lookup_cpu_backward;
lookup_apply_dense_fn lookup_cpu_apply_dense;

#endif
