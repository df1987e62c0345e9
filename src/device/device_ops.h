/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_DEVICE_OPS_H
#define NEUROSHARD_DEVICE_DEVICE_OPS_H

#include "device/elementwise.h"
#include "device/lookup.h"
#include "device/probe.h"
#include "device/stream.h"

EXTERN_C_BEGIN

/*
 * Functions that each body (CPU, CUDA) of this folder implements. Only files of
 * this folder include this header. The caller is the device-independent front
 * (device.c, lookup.c, alltoall.c), which has already checked the arguments.
 * Pointer arguments are documented in the headers of the front.
 */

/* One copy within the device's memory. The two regions do not overlap. */
struct device_copy {
    void *d_dst;
    const void *d_src;
    size_t n_bytes;
};

/* Pairs of key and value, two buffers for them, and the scratch needed to sort
 * them. */
struct device_pairs {
    void *d_keys[2];       /* each uint32_t[n] or uint64_t[n] */
    uint32_t *d_values[2]; /* each uint32_t[n] */
    unsigned key_bytes;    /* 4 or 8 */
    /* Index, 0 or 1, of the buffers that hold the pairs now; a sort may change
     * it. */
    unsigned current;
    void *d_temp; /* scratch of a GPU's sort */
    size_t temp_bytes;
};
static inline void device_part_pairs(struct device_pairs *pairs,
                                     struct device_parts *parts, size_t n)
{
    for (unsigned i = 0; i < 2; i++) {
        pairs->d_keys[i] = device_part(parts, n * pairs->key_bytes);
        pairs->d_values[i] =
            (uint32_t *)device_part(parts, n * sizeof(uint32_t));
    }
    pairs->d_temp = device_part(parts, pairs->temp_bytes);
}

/* One run of a probe (struct probe). probe.c has prepared its memory. */
struct probe_job {
    const struct probe *probe;
    void *d_src;     /* source of READ, COPY, GATHER: [n_bytes] */
    void *d_dst;     /* destination of COPY: [n_bytes] */
    void *d_indices; /* GATHER: uint32_t [n], numbers of rows of d_src */
    /* SORT: the input is in d_keys[0], d_values[0] */
    struct device_pairs pairs;
    void *d_scratch; /* [scratch_bytes], as probe_scratch requested */
    size_t scratch_bytes;
};

/* Types of those functions that each body implements in a file of its own. */
/* Sets job->scratch_bytes and job->pairs.temp_bytes: the memory that the job
 * needs in addition to its source, destination, indices and pairs. */
typedef int probe_scratch_fn(struct device *device, struct probe_job *job,
                             struct err *err);
typedef int probe_run_fn(struct device *device, const struct probe_job *job,
                         struct err *err);
typedef int elementwise_run_fn(struct device *device,
                               const struct elementwise *job, struct err *err);
typedef int stream_draw_fn(struct device *device, const struct stream *streams,
                           uint32_t n_streams, uint64_t batch_seed,
                           uint32_t *d_indices, uint64_t *d_offsets,
                           struct err *err);
typedef int stream_measure_fn(struct device *device,
                              const struct stream *streams, uint32_t n_streams,
                              const uint32_t *d_indices,
                              struct sample_table *tables, struct err *err);
/* Makes a lookup in the body's own struct. The first member of that struct is a
 * copy of `shape`, and the body adds its own members after it. The tables that
 * `shape` points to are not copied. */
typedef int lookup_open_fn(struct lookup **out, const struct lookup *shape,
                           struct err *err);
typedef void lookup_close_fn(struct lookup *lookup);
typedef int lookup_forward_fn(struct lookup *lookup,
                              const struct lookup_batch *batch, void *d_out,
                              struct err *err);
typedef int lookup_backward_fn(struct lookup *lookup, unsigned phases,
                               const struct lookup_batch *batch,
                               const void *d_grad, float learning_rate,
                               struct err *err);
typedef int lookup_apply_dense_fn(struct device *device,
                                  const struct lookup_table *table,
                                  float *d_dense, float learning_rate,
                                  enum optimizer optimizer, struct err *err);

struct device_ops {
    /* Closes the device. All memory blocks have been freed by device_close
     * before it calls this function. */
    void (*close)(struct device *device);
    uint64_t (*free_bytes)(const struct device *device);
    int (*alloc)(struct device *device, void **d_ptr, size_t n_bytes,
                 struct err *err);
    /* Frees a block. n_bytes: the size with which it was allocated. */
    void (*free)(struct device *device, void *d_ptr, size_t n_bytes);
    /* Copies n_bytes between host and device, in either direction. */
    int (*transfer)(struct device *device, void *dst, const void *src,
                    size_t n_bytes, struct err *err);
    int (*copy)(struct device *device, const struct device_copy *copies,
                size_t n_copies, struct err *err);
    int (*fill)(struct device *device, void *d_dst,
                const struct fill_window *window, struct err *err);
    int (*add)(struct device *device, float *d_sum, const float *d_part,
               uint64_t n, struct err *err);
    elementwise_run_fn *elementwise;
    /* The six functions `wait`, `hold`, `release`, `delay`, `flush` and
     * `health` may be NULL in a body that has nothing to do in them. */
    int (*wait)(struct device *device, struct err *err);
    int (*hold)(struct device *device, struct err *err);
    int (*release)(struct device *device, struct err *err);
    int (*delay)(struct device *device, struct err *err);
    int (*flush)(struct device *device, struct err *err);
    void (*health)(const struct device *device, struct sample_health *health);
    probe_scratch_fn *probe_scratch;
    probe_run_fn *probe;
    stream_draw_fn *draw;
    stream_measure_fn *measure;
    int (*mark)(struct device *device, unsigned slot, struct err *err);
    int (*elapsed)(struct device *device, unsigned from, unsigned to,
                   double *ms, struct err *err);
    lookup_open_fn *lookup_open;
    lookup_close_fn *lookup_close;
    lookup_forward_fn *lookup_forward;
    lookup_backward_fn *lookup_backward;
    lookup_apply_dense_fn *lookup_apply_dense;
};

struct device_block {
    void *d_ptr;
    size_t n_bytes;
};

/* Sets the error message that `alloc` reports if n_bytes do not fit into the
 * device's memory. Returns -1. */
int device_is_full(const struct device *device, size_t n_bytes,
                   struct err *err) MUST_CHECK;

/* First member of the struct with which the CPU or CUDA body represents a
 * lookup. */
struct lookup {
    struct device *device;       /* not owned */
    struct lookup_table *tables; /* owned by lookup.c */
    uint32_t n_tables;
    uint32_t batch;
    uint32_t out_dim; /* sum of the dims of all tables */
    uint32_t max_dim;
    uint64_t max_lookups;
    enum optimizer optimizer;
    enum precision output;
    bool has_places; /* any table has places */
};

/* Declares the functions of one body: device_open_NAME, device_count_NAME
 * (device_nocuda.c defines these two in a build without CUDA), and the members
 * of struct device_ops that are implemented in files of their own. */
#define DEVICE_BODY(id, name)                                     \
    int device_open_##name(struct device **out, unsigned ordinal, \
                           unsigned n_threads, struct err *err);  \
    unsigned device_count_##name(void);                           \
    elementwise_run_fn elementwise_##name##_run;                  \
    probe_scratch_fn probe_##name##_scratch;                      \
    probe_run_fn probe_##name##_run;                              \
    stream_draw_fn stream_##name##_draw;                          \
    stream_measure_fn stream_##name##_measure;                    \
    lookup_open_fn lookup_##name##_open;                          \
    lookup_close_fn lookup_##name##_close;                        \
    lookup_forward_fn lookup_##name##_forward;                    \
    lookup_backward_fn lookup_##name##_backward;                  \
    lookup_apply_dense_fn lookup_##name##_apply_dense;
DEVICE_KINDS(DEVICE_BODY)

EXTERN_C_END

#endif
