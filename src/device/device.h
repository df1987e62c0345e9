/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_DEVICE_H
#define NEUROSHARD_DEVICE_DEVICE_H

#include "base/json.h"
#include "core/sample.h"

EXTERN_C_BEGIN

/*
 * One device that executes embedding lookups. Two implementations ("bodies")
 * have the same interface: a CPU body (threads, SIMD chosen at run time, huge
 * pages) and a CUDA body. Pointers named d_* point into the device's memory; on
 * a CPU this is host memory.
 */

/*
 * List of device kinds, one KIND(ID, name) per line. The body of each kind
 * implements device_open_NAME and device_count_NAME (device/device_ops.h).
 * Other modules may query only one property of a kind, device_is_host: true if
 * the device's memory is the host's memory and its own threads do the work.
 */
#define DEVICE_KINDS(KIND) \
    KIND(CPU, cpu)         \
    KIND(CUDA, cuda)

#define DEVICE_ENUMERATOR(id, name) DEVICE_##id,
enum device_kind { DEVICE_KINDS(DEVICE_ENUMERATOR) N_DEVICE_KINDS };
/* The names of all kinds: "cpu|cuda" */
#define DEVICE_CHOICE(id, name) "|" #name
#define DEVICE_KIND_NAMES (&(DEVICE_KINDS(DEVICE_CHOICE))[1])
/* Returns the number of devices of a kind that this build and machine have. */
unsigned device_count(enum device_kind kind);

/* Facts about a device that the setting of a measurement records (struct
 * sample_setting). */
struct device_facts {
    char name[128]; /* "cpu:AMD EPYC 9575F" or "cuda:NVIDIA H200" */
    char isa[16];   /* "avx512", "avx2", "portable" or "sm_90" */
    char driver[80], cuda[16], host[80];
    uint32_t n_threads; /* 0 on a GPU */
};

struct device_ops;
struct device_block;

/* First member of each body's own struct; read-only for other modules. */
struct device {
    const struct device_ops *ops;
    enum device_kind kind;
    struct device_facts facts;
    /* Highest SM clock seen after a measurement, in MHz; 0 if the device does
     * not report its clock. */
    double top_sm_mhz;
    /* Allocated blocks [n_blocks], not sorted; owned by device.c. */
    struct device_block *blocks;
    size_t n_blocks;
    /* Facts about a GPU that NCCL needs. */
    char identity[16]; /* unique to this GPU (its UUID) */
    void *queue;       /* the cudaStream_t of all work */
};

/* Opens a device. CPU: n_threads 0 means all; ordinal is ignored. CUDA: ordinal
 * selects the GPU. Without a CUDA body or a GPU it fails with ERR_DEVICE and
 * the reason. */
int device_open(struct device **out, enum device_kind kind, unsigned ordinal,
                unsigned n_threads, struct err *err) MUST_CHECK;
void device_close(struct device *device); /* NULL is fine */

bool device_is_host(const struct device *device);
/* Returns {name, isa, threads}; the caller decrefs it. */
json_t *device_to_json(const struct device *device);
/* Returns the setting of measurements on this device. Its strings point into
 * `facts`. */
struct sample_setting device_setting(const struct device_facts *facts,
                                     enum precision precision,
                                     enum optimizer optimizer, uint32_t batch);
/* Returns the number of bytes that could be allocated now. */
uint64_t device_free_bytes(const struct device *device);

/* Allocates device memory, aligned to DEVICE_ALIGN bytes and in huge pages if
 * available. The pages are touched but not zeroed. Fails with ERR_DEVICE if the
 * memory does not fit. */
int device_alloc(struct device *device, void **d_ptr, size_t n_bytes,
                 struct err *err) MUST_CHECK;
void device_free(struct device *device, void *d_ptr); /* NULL is fine */
/* Buffer that device_reserve enlarges if it is too small. Enlarging it loses
 * the contents. A zeroed region has no memory. The caller frees d_ptr with
 * device_free. */
struct device_region {
    void *d_ptr;
    size_t n_bytes;
};
int device_reserve(struct device *device, struct device_region *region,
                   size_t n_bytes, struct err *err) MUST_CHECK;
/* Divides one allocated block into consecutive parts, because one large
 * allocation costs less than many small ones. device_part returns the next
 * part, aligned as the block is. If d_block is NULL, device_part returns NULL
 * and only adds up the size that the block must have. */
struct device_parts {
    char *d_block;
    size_t n_bytes; /* handed out so far */
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
/* Fills n floats (or fp16 values) with small reproducible values in (-0.05,
 * 0.05). A value depends on (seed, element index) only, so it is the same on
 * every device: stream_fill_value (device/stream_math.h) computes it, before it
 * is rounded to fp16. */
int device_fill(struct device *device, void *d_dst, uint64_t n,
                enum precision precision, uint64_t seed,
                struct err *err) MUST_CHECK;
/* Window of a larger filled matrix: element (i, j) of d_dst[n_rows][width] gets
 * the value that device_fill gives to index first + i * stride + j. */
struct fill_window {
    uint64_t seed, first, stride;
    uint64_t n_rows;
    uint32_t width;
    enum precision precision; /* fp32 or fp16 */
};
int device_fill_window(struct device *device, void *d_dst,
                       const struct fill_window *window,
                       struct err *err) MUST_CHECK;
/* Sets n floats to one value. Waits for the device, as an upload does. */
int device_set(struct device *device, float *d_dst, uint64_t n, float value,
               struct err *err) MUST_CHECK;
/* Computes d_sum[i] += d_part[i] for n floats. The arrays must not overlap. */
int device_add(struct device *device, float *d_sum, const float *d_part,
               uint64_t n, struct err *err) MUST_CHECK;

/* Records a time stamp in `slot`: the clock on a CPU, an event on a GPU. */
#define DEVICE_N_MARKS 16
int device_mark(struct device *device, unsigned slot,
                struct err *err) MUST_CHECK;
/* Stores the milliseconds between two marks in *ms. Waits for the second
 * mark. */
int device_elapsed(struct device *device, unsigned from, unsigned to,
                   double *ms, struct err *err) MUST_CHECK;
/* Waits until all work is done. */
int device_wait(struct device *device, struct err *err) MUST_CHECK;

/*
 * A timed section. A GPU does not start the work that it is given after
 * device_hold until device_release, when all of it has been queued. The times
 * between marks then contain no launch overhead. (A kernel waits for a flag
 * that the host sets, for at most 10 s.) At most DEVICE_MAX_HELD pieces of work
 * may be queued in a section. Functions that wait for the GPU or change its
 * memory (device_elapsed, _wait, _upload, _download, _set, _alloc, _free,
 * _close) release the held work first. device_release fails with ERR_DEVICE if
 * the host took nearly those 10 s. On a CPU both functions do nothing.
 */
#define DEVICE_MAX_HELD 256
int device_hold(struct device *device, struct err *err) MUST_CHECK;
int device_release(struct device *device, struct err *err) MUST_CHECK;
/* Delays the next work of a GPU by 0.2 ms, time for the host to queue a few
 * pieces of work. Use it for work that may have to wait for other GPUs and
 * therefore must not be held. Does nothing on a CPU. */
int device_delay(struct device *device, struct err *err) MUST_CHECK;
/* Evicts all useful data from a GPU's last-level cache by reading enough other
 * memory. It does not write, because a cache full of written lines would have
 * to write them back later. Does nothing on a CPU, where benchmarks rotate
 * between several index sets instead (lookup_n_cold_sets). */
int device_flush(struct device *device, struct err *err) MUST_CHECK;

/* Stores the current clocks, temperature, power and throttle reasons. Values
 * that the device does not report are zero (CPU; no NVML). */
void device_health(const struct device *device, struct sample_health *health);
/* Returns true if measurements between two moments, `before` and `after`, must
 * be flagged. Either heat, the power brake or the hardware lowered the clocks,
 * or the clock is below 3/4 of the highest one that this device has had after a
 * measurement so far. */
bool device_was_throttled(struct device *device,
                          const struct sample_health *before,
                          const struct sample_health *after);

EXTERN_C_END

#endif
