/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_DEVICE_CPU_H
#define NEUROSHARD_DEVICE_DEVICE_CPU_H

#include "base/cpu.h"
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
                       void *out, struct err *err) MUST_CHECK;
int lookup_cpu_backward(struct lookup *lookup, unsigned phases,
                        const struct lookup_batch *batch, const void *grad,
                        float learning_rate, struct err *err) MUST_CHECK;
int lookup_cpu_apply_dense(struct device *device,
                           const struct lookup_table *table, float *dense,
                           float learning_rate, enum optimizer optimizer,
                           struct err *err) MUST_CHECK;
int stream_cpu_draw(struct device *device, const struct stream *streams,
                    uint32_t n_streams, uint64_t batch_seed, uint32_t *indices,
                    uint64_t *offsets, struct err *err) MUST_CHECK;
int stream_cpu_measure(struct device *device, const struct stream *streams,
                       uint32_t n_streams, const uint32_t *indices,
                       double *n_unique, double (*bins)[REUSE_BINS],
                       struct err *err) MUST_CHECK;
int probe_cpu_scratch(struct device *device, const struct probe *probe,
                      size_t *n_bytes, struct err *err) MUST_CHECK;
int probe_cpu_run(struct device *device, const struct probe_job *job,
                  struct err *err) MUST_CHECK;

#endif
