/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_DEVICE_H
#define NEUROSHARD_DEVICE_DEVICE_H

#include "base/json.h"
#include "core/sample.h"

EXTERN_C_BEGIN

/*
 * One device that looks embeddings up: a CPU body (threads, SIMD chosen at run
 * time, huge pages) and a CUDA body behind the same functions. Pointers named
 * d_* live in the device's memory; on a CPU that is host memory.
 */

/*
 * The kinds of devices, a line each: KIND(ID, name). The bodies of a kind give
 * device_open_NAME and device_count_NAME (device/device_ops.h). Whether a
 * device's memory is the host's, and so its own threads do the work, is all
 * that others may ask of a kind (device_is_host).
 */
#define DEVICE_KINDS(KIND) \
    KIND(CPU, cpu)         \
    KIND(CUDA, cuda)

#define DEVICE_ENUMERATOR(id, name) DEVICE_##id,
enum device_kind { DEVICE_KINDS(DEVICE_ENUMERATOR) N_DEVICE_KINDS };
/* "cpu|cuda" */
#define DEVICE_CHOICE(id, name) "|" #name
#define DEVICE_KIND_NAMES (&(DEVICE_KINDS(DEVICE_CHOICE))[1])
/* Devices of a kind that this build and machine have. */
unsigned device_count(enum device_kind kind);

/* What a device says of a setting (struct sample_setting). */
struct device_facts {
    char name[128]; /* "cpu:AMD EPYC 9575F" or "cuda:NVIDIA H200" */
    char isa[16];   /* "avx512", "avx2", "portable" or "sm_90" */
    char driver[80], cuda[16], host[80];
    uint32_t n_threads; /* 0 on a GPU */
};

struct device_ops;
struct device_block;

/* First member of each body's own struct; for others to read. */
struct device {
    const struct device_ops *ops;
    enum device_kind kind;
    struct device_facts facts;
    double top_sm_mhz; /* seen after a measurement; 0: the device does not
                          say */
    struct device_block *blocks; /* owned by the front; not sorted */
    size_t n_blocks;
    /* What NCCL has to know of a GPU. */
    char identity[16]; /* no other GPU's */
    void *queue;       /* the cudaStream_t that all work goes through */
};

/* CPU: n_threads 0 means all; ordinal is ignored. CUDA: ordinal names the
 * GPU; without a CUDA body or a GPU it is ERR_DEVICE with the reason. */
int device_open(struct device **out, enum device_kind kind, unsigned ordinal,
                unsigned n_threads, struct err *err) MUST_CHECK;
void device_close(struct device *device); /* NULL is fine */

bool device_is_host(const struct device *device);
/* {name, isa, threads}; the caller decrefs it. */
json_t *device_to_json(const struct device *device);
/* The setting of what is measured there; its texts are those of the facts. */
struct sample_setting device_setting(const struct device_facts *facts,
                                     enum precision precision,
                                     enum optimizer optimizer, uint32_t batch);
/* Bytes that could be allocated now. */
uint64_t device_free_bytes(const struct device *device);

/* Device memory, aligned to DEVICE_ALIGN bytes, huge pages where there are any,
 * touched but not zeroed. ERR_DEVICE where it does not fit. */
int device_alloc(struct device *device, void **d_ptr, size_t n_bytes,
                 struct err *err) MUST_CHECK;
void device_free(struct device *device, void *d_ptr); /* NULL is fine */
/* Memory that grows where more is needed than it has; then what was in it is
 * lost. A zeroed one has none; device_free of d_ptr gives it back. */
struct device_region {
    void *d_ptr;
    size_t n_bytes;
};
int device_reserve(struct device *device, struct device_region *region,
                   size_t n_bytes, struct err *err) MUST_CHECK;
/* The next part of a block, aligned as the block is: memory that is taken once
 * costs less than many pieces of it. Without a block parts are NULL, and only
 * the bytes are counted that it has to have. */
struct device_parts {
    char *d_block;
    size_t n_bytes; /* so far */
};
#define DEVICE_ALIGN 512
static inline void *device_part(struct device_parts *parts, size_t n_bytes)
{
    char *d_part = parts->d_block ? parts->d_block + parts->n_bytes : NULL;

    parts->n_bytes +=
        (n_bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
    return d_part;
}
int device_upload(struct device *device, void *d_dst, const void *src,
                  size_t n_bytes, struct err *err) MUST_CHECK;
int device_download(struct device *device, void *dst, const void *d_src,
                    size_t n_bytes, struct err *err) MUST_CHECK;
/* Fills n floats (or fp16) with small reproducible values in (-0.05, 0.05)
 * that depend on (seed, element index) only: the same on every device; those
 * of stream_fill_value (device/stream_math.h), before rounding to fp16. */
int device_fill(struct device *device, void *d_dst, uint64_t n,
                enum precision precision, uint64_t seed,
                struct err *err) MUST_CHECK;
/* A window of a larger filled matrix: element (i, j) of d_dst[n_rows][width]
 * gets the value of index first + i * stride + j. */
struct fill_window {
    uint64_t seed, first, stride;
    uint64_t n_rows;
    uint32_t width;
    enum precision precision; /* fp32 or fp16 */
};
int device_fill_window(struct device *device, void *d_dst,
                       const struct fill_window *window,
                       struct err *err) MUST_CHECK;
/* n floats of one value; waits for the device, as an upload does. */
int device_set(struct device *device, float *d_dst, uint64_t n, float value,
               struct err *err) MUST_CHECK;
/* d_sum[i] += d_part[i] for n floats, which do not overlap. */
int device_add(struct device *device, float *d_sum, const float *d_part,
               uint64_t n, struct err *err) MUST_CHECK;

/* Time stamps around work: on a CPU the clock, on a GPU an event. */
#define DEVICE_N_MARKS 16
int device_mark(struct device *device, unsigned slot,
                struct err *err) MUST_CHECK;
/* Milliseconds between two marks; waits for the second. */
int device_elapsed(struct device *device, unsigned from, unsigned to,
                   double *ms, struct err *err) MUST_CHECK;
/* Waits until all work is done. */
int device_wait(struct device *device, struct err *err) MUST_CHECK;

/*
 * A timed section. On a GPU, work that is handed over after device_hold starts
 * only at device_release, when all of it has been queued (a kernel waits for
 * the host's flag, 10 s at most), so that no launch shows in the times between
 * marks; at most DEVICE_MAX_HELD pieces of work may be queued so. Whatever
 * waits for the GPU or changes its memory (device_elapsed, _wait, _upload,
 * _download, _set, _alloc, _free, _close) releases first. ERR_DEVICE from
 * device_release where the host took nearly those 10 s. On a CPU both do
 * nothing.
 */
#define DEVICE_MAX_HELD 256
int device_hold(struct device *device, struct err *err) MUST_CHECK;
int device_release(struct device *device, struct err *err) MUST_CHECK;
/* What is handed over to a GPU next starts a moment later, 0.2 ms, by when the
 * host has queued a few pieces of work: for what must not be held, because it
 * may have to wait for other GPUs. A CPU does nothing. */
int device_delay(struct device *device, struct err *err) MUST_CHECK;
/* A GPU reads so much other memory that its last-level cache holds nothing of
 * use (by reading: a cache full of written lines would have to write them back
 * later). A CPU does nothing: there the index sets that take turns do it. */
int device_flush(struct device *device, struct err *err) MUST_CHECK;

/* Clocks, temperature, power and throttle reasons now; zeros where the device
 * does not say (CPU; no NVML). */
void device_health(const struct device *device, struct sample_health *health);
/* Whether measurements between two such moments are to be flagged: clocks
 * were lowered by heat, power brake or hardware, or run below 3/4 of the
 * highest that this device had after a measurement so far. */
bool device_was_throttled(struct device *device,
                          const struct sample_health *before,
                          const struct sample_health *after);

EXTERN_C_END

#endif
