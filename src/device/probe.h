/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_PROBE_H
#define NEUROSHARD_DEVICE_PROBE_H

#include "device/device.h"

EXTERN_C_BEGIN

/*
 * A probe measures a ceiling: the best speed at which a device can read, copy,
 * gather or sort, measured with the simplest code that does it. The speed of
 * lookups is compared with these ceilings. A probe allocates its own memory and
 * frees it again.
 */
enum probe_kind {
    PROBE_READ, /* reads n_bytes sequentially */
    PROBE_COPY, /* copies n_bytes; each byte counts twice */
    /* Reads and sums n rows of row_bytes each. The rows are drawn uniformly
     * from a memory area of n_bytes. */
    PROBE_GATHER,
    /* Sorts n pairs of a key and a 32-bit value by key_bits bits of the key. */
    PROBE_SORT,
    PROBE_LAUNCH /* launches one piece of work that does nothing */
};
extern const char *const probe_kind_names[]; /* "read", "copy" ..., then NULL */

struct probe {
    enum probe_kind kind;
    uint64_t n_bytes; /* bytes (READ, COPY), footprint (GATHER), else 0 */
    uint64_t n; /* number of rows (GATHER), number of pairs (SORT), else 0 */
    uint32_t row_bytes; /* bytes of a row, a multiple of 16 (GATHER) */
    /* bits of a key to sort by, 1 .. 64 (SORT). Keys have 8 bytes if it is
     * above 32, else 4 bytes. */
    uint32_t key_bits;
};

/*
 * Returns the bytes that a probe moves, from which its GB/s follow:
 *
 *   READ    n_bytes
 *   COPY    2 n_bytes
 *   GATHER  n (row_bytes + 4)
 *   SORT    reads and writes the pairs once for every 8 bits of the key
 *   LAUNCH  0
 */
double probe_moved_bytes(const struct probe *probe);
/* Returns the bytes of device memory that a probe takes. */
uint64_t probe_memory_bytes(const struct probe *probe);

/* Result of a probe: the ceiling that it measured. */
struct ceiling {
    struct probe probe;
    struct timing timing;
    uint32_t n_iterations;
    unsigned flags; /* 0 or SAMPLE_THROTTLED */
};

/* Runs a probe n_iterations times after a warm-up and stores the median and
 * deciles of its times. The last-level cache is flushed before each run. Fails
 * with ERR_DEVICE if memory is short. */
int probe_run(struct ceiling *ceiling, struct device *device,
              const struct probe *probe, unsigned n_iterations,
              struct err *err) MUST_CHECK;

EXTERN_C_END

#endif
