/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_DEVICE_H
#define NEUROSHARD_DEVICE_DEVICE_H

#include "base/json.h"
#include "core/sample.h"

EXTERN_C_BEGIN

/*
 * One device that executes embedding lookups. There are two implementations
 * ("bodies") of this interface. The CPU body uses threads, huge pages, and the
 * SIMD instruction set chosen at run time. The CUDA body uses a GPU. Pointers
 * named d_* point into the device's memory; on a CPU this is host memory.
 */

/*
 * List of device kinds, one KIND(ID, name) per line. The body of each kind
 * implements device_open_NAME and device_count_NAME (device/device_ops.h).
 * Other modules treat all kinds alike, except that they may ask device_is_host,
 * which returns true if the device's memory is the host's memory and host
 * threads do the work.
 */
#define DEVICE_KINDS(KIND) \
    KIND(CPU, cpu)         \
    KIND(CUDA, cuda)

#define DEVICE_ENUMERATOR(id, name) DEVICE_##id,
enum device_kind { DEVICE_KINDS(DEVICE_ENUMERATOR) N_DEVICE_KINDS };
/* The names of all device kinds, as one string: "cpu|cuda" */
#define DEVICE_CHOICE(id, name) "|" #name
#define DEVICE_KIND_NAMES (&(DEVICE_KINDS(DEVICE_CHOICE))[1])
/* Returns the number of devices of this kind that the machine has and that this
 * build of the program can use. */
unsigned device_count(enum device_kind kind);

/* Facts about a device. They are recorded in the setting of each measurement
 * (struct sample_setting). */
struct device_facts {
    char name[128]; /* "cpu:AMD EPYC 9575F" or "cuda:NVIDIA H200" */
    char isa[16];   /* "avx512", "avx2", "portable" or "sm_90" */
    char driver[80], cuda[16], host[80];
    uint32_t n_threads; /* number of CPU threads; 0 on a GPU */
};

struct device_ops;
struct device_block;

/* First member of the struct with which the CPU or CUDA body represents a
 * device. Other modules only read it. */
struct device {
    const struct device_ops *ops;
    enum device_kind kind;
    struct device_facts facts;
    /* Highest SM clock seen after any measurement so far, in MHz; 0 if the
     * device does not report its clock. */
    double top_sm_mhz;
    /* Memory blocks that are allocated now, [n_blocks], not sorted; owned by
     * device.c. */
    struct device_block *blocks;
    size_t n_blocks;
    /* Facts about a GPU that NCCL needs: */
    char identity[16]; /* differs between any two GPUs: the UUID */
    /* the cudaStream_t in which all work of the device is queued */
    void *queue;
};

/*
 * Opens a device.
 *
 *   CPU:   n_threads is the number of threads, 0 for all. `ordinal` is
 *          ignored.
 *   CUDA:  `ordinal` selects the GPU. n_threads is ignored.
 *
 * Opening a CUDA device fails with ERR_DEVICE and the reason if this build has
 * no CUDA body or the machine has no GPU.
 */
int device_open(struct device **out, enum device_kind kind, unsigned ordinal,
                unsigned n_threads, struct err *err) MUST_CHECK;
void device_close(struct device *device); /* NULL is fine */

bool device_is_host(const struct device *device);
/* Returns a JSON object with the device's name, isa and number of threads; the
 * caller decrefs it. */
json_t *device_to_json(const struct device *device);
/* Returns the setting that describes measurements on this device. The strings
 * in the setting point into `facts`. */
struct sample_setting device_setting(const struct device_facts *facts,
                                     enum precision precision,
                                     enum optimizer optimizer, uint32_t batch);
/* Returns the number of bytes of device memory that could be allocated now. */
uint64_t device_free_bytes(const struct device *device);

/* Allocates device memory, aligned to DEVICE_ALIGN bytes and in huge pages if
 * available. The pages are touched but not zeroed. Fails with ERR_DEVICE if the
 * memory does not fit. */
int device_alloc(struct device *device, void **d_ptr, size_t n_bytes,
                 struct err *err) MUST_CHECK;
void device_free(struct device *device, void *d_ptr); /* NULL is fine */
/* Buffer in device memory that grows on demand: device_reserve enlarges it if
 * it has fewer than n_bytes. Enlarging loses the contents. A zeroed struct
 * device_region is an empty buffer. The caller frees d_ptr with device_free. */
struct device_region {
    void *d_ptr;
    size_t n_bytes;
};
int device_reserve(struct device *device, struct device_region *region,
                   size_t n_bytes, struct err *err) MUST_CHECK;
/* Divides one allocated block into consecutive parts, because one large
 * allocation costs less than many small ones. device_part returns the address
 * of the next part, aligned as the block is. To find the size that the block
 * must have, call device_part with d_block NULL: it then returns NULL and only
 * adds n_bytes up. */
struct device_parts {
    char *d_block;
    size_t n_bytes; /* bytes of the parts that were handed out so far */
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
/* Fills n floats (or fp16 values) with small reproducible values between -0.05
 * and 0.05. A value depends only on the seed and the index of the element, so
 * it is the same on every device. stream_fill_value (device/stream_math.h)
 * computes it in fp32; fp16 values are rounded from that. */
int device_fill(struct device *device, void *d_dst, uint64_t n,
                enum precision precision, uint64_t seed,
                struct err *err) MUST_CHECK;
/* Window of a larger matrix, for device_fill_window. Element (i, j) of
 * d_dst[n_rows][width] gets the value that device_fill would store at index
 * first + i * stride + j. */
struct fill_window {
    uint64_t seed, first, stride;
    uint64_t n_rows;
    uint32_t width;
    enum precision precision; /* fp32 or fp16 */
};
int device_fill_window(struct device *device, void *d_dst,
                       const struct fill_window *window,
                       struct err *err) MUST_CHECK;
/* Sets n floats to one value. Waits until the device has finished all queued
 * work, as device_upload does. */
int device_set(struct device *device, float *d_dst, uint64_t n, float value,
               struct err *err) MUST_CHECK;
/* Computes d_sum[i] += d_part[i] for n floats. The arrays must not overlap. */
int device_add(struct device *device, float *d_sum, const float *d_part,
               uint64_t n, struct err *err) MUST_CHECK;

/* Records a time stamp in `slot`. On a CPU it is the current time; on a GPU it
 * is an event, which gets its time when the work queued before it is done. */
#define DEVICE_N_MARKS 16
int device_mark(struct device *device, unsigned slot,
                struct err *err) MUST_CHECK;
/* Stores in *ms the milliseconds between two time stamps of device_mark. Waits
 * until the second one has been reached. */
int device_elapsed(struct device *device, unsigned from, unsigned to,
                   double *ms, struct err *err) MUST_CHECK;
/* Waits until the device has done all queued work. */
int device_wait(struct device *device, struct err *err) MUST_CHECK;

/*
 * A timed section. A GPU does not start work that is queued after device_hold
 * until device_release is called, when all work of the section has been queued.
 * The times between marks then contain no launch overhead. To hold the work, a
 * kernel waits for a flag that the host sets, for at most 10 s.
 *
 * At most DEVICE_MAX_HELD pieces of work may be queued in a section. Functions
 * that wait for the GPU or change its memory (device_elapsed, _wait, _upload,
 * _download, _set, _alloc, _free, _close) release the held work first.
 * device_release fails with ERR_DEVICE if it is called nearly 10 s after
 * device_hold, because the kernel may have stopped waiting. On a CPU both
 * functions do nothing.
 */
#define DEVICE_MAX_HELD 256
int device_hold(struct device *device, struct err *err) MUST_CHECK;
int device_release(struct device *device, struct err *err) MUST_CHECK;
/* Makes a GPU wait for 0.2 ms before the next work that is queued. In this time
 * the host can queue a few pieces of work. Use this function instead of
 * device_hold for work that may have to wait for other GPUs and therefore must
 * not be held. Does nothing on a CPU. */
int device_delay(struct device *device, struct err *err) MUST_CHECK;
/* Evicts all useful data from a GPU's last-level cache by reading enough other
 * memory. The function does not write memory, because the cache would have to
 * write the modified lines back later, during the measurement. Does nothing on
 * a CPU, where benchmarks rotate between several index sets instead
 * (lookup_n_cold_sets). */
int device_flush(struct device *device, struct err *err) MUST_CHECK;

/* Stores the device's current clocks, temperature, power and throttle reasons.
 * A value that the device does not report is zero. On a CPU, or without the
 * library NVML, all values are zero. */
void device_health(const struct device *device, struct sample_health *health);
/*
 * Returns true if a measurement must be flagged as throttled. `before` and
 * `after` are the device's health at its start and end. The measurement is
 * flagged in two cases:
 *
 *   - heat, the power brake or the hardware lowered the clocks
 *   - the clock is below 3/4 of the highest clock that this device has had
 *     after any measurement so far
 */
bool device_was_throttled(struct device *device,
                          const struct sample_health *before,
                          const struct sample_health *after);

EXTERN_C_END

#endif
