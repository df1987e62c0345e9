/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_DEVICE_OPS_H
#define NEUROSHARD_DEVICE_DEVICE_OPS_H

#include "device/device.h"
#include "device/lookup.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a body of the device folder implements. Only files of this folder
 * include it. Arguments have been checked by the front (device.c, lookup.c,
 * alltoall.c), pointers are as the front's functions say.
 */

/* One copy within the device's memory; regions do not overlap. */
struct device_copy {
    void *d_dst;
    const void *d_src;
    size_t n_bytes;
};

struct device_ops {
    void (*close)(struct device *device);
    uint64_t (*free_bytes)(const struct device *device);
    int (*alloc)(struct device *device, void **d_ptr, size_t n_bytes,
                 struct err *err);
    void (*free)(struct device *device, void *d_ptr); /* not NULL */
    int (*upload)(struct device *device, void *d_dst, const void *src,
                  size_t n_bytes, struct err *err);
    int (*download)(struct device *device, void *dst, const void *d_src,
                    size_t n_bytes, struct err *err);
    int (*copy)(struct device *device, const struct device_copy *copies,
                size_t n_copies, struct err *err);
    int (*fill)(struct device *device, void *d_dst, uint64_t n,
                enum precision precision, uint64_t seed, struct err *err);
    int (*mark)(struct device *device, unsigned slot, struct err *err);
    int (*elapsed)(struct device *device, unsigned from, unsigned to,
                   double *ms, struct err *err);
    /* `shape` is copied; the body adds what it needs behind it. */
    int (*lookup_open)(struct lookup **out, const struct lookup *shape,
                       struct err *err);
    void (*lookup_close)(struct lookup *lookup);
    int (*lookup_forward)(struct lookup *lookup,
                          const struct lookup_batch *batch, float *d_out,
                          struct err *err);
    int (*lookup_backward)(struct lookup *lookup,
                           const struct lookup_batch *batch,
                           const float *d_grad, float learning_rate,
                           struct err *err);
};

/* First member of each body's own struct. */
struct device {
    const struct device_ops *ops;
    enum device_kind kind;
    char name[128];
    char isa[16];
    unsigned n_threads;
};

/* First member of each body's own struct. */
struct lookup {
    struct device *device;             /* not owned */
    const struct lookup_table *tables; /* owned by the body's struct */
    uint32_t n_tables;
    uint32_t batch;
    uint32_t out_dim; /* sum of dims */
    uint32_t max_dim;
    uint64_t max_lookups;
    enum optimizer optimizer;
};

/* How each body is opened; device_cuda.cu or device_nocuda.c has the second.
 */
int device_open_cpu(struct device **out, unsigned n_threads, struct err *err);
int device_open_cuda(struct device **out, unsigned ordinal, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
