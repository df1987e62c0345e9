/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_DEVICE_CPU_H
#define NEUROSHARD_DEVICE_DEVICE_CPU_H

#include "base/parallel.h"
#include "device/device_ops.h"

/* What the parts of the CPU body share. */

struct allocation {
    void *ptr;
    size_t n_bytes; /* as mapped */
};

struct device_cpu {
    struct device base;
    struct pool *pool; /* owned */
    enum cpu_isa isa;
    struct allocation *allocations; /* owned; not sorted */
    size_t n_allocations;
    double marks_ms[DEVICE_N_MARKS];
};

static inline struct device_cpu *device_cpu(struct device *device)
{
    return (struct device_cpu *)device;
}

int lookup_cpu_open(struct lookup **out, const struct lookup *shape,
                    struct err *err) MUST_CHECK;
void lookup_cpu_close(struct lookup *lookup);
int lookup_cpu_forward(struct lookup *lookup, const struct lookup_batch *batch,
                       float *out, struct err *err) MUST_CHECK;
int lookup_cpu_backward(struct lookup *lookup, const struct lookup_batch *batch,
                        const float *grad, float learning_rate,
                        struct err *err) MUST_CHECK;

#endif
