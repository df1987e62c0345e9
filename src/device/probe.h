/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_PROBE_H
#define NEUROSHARD_DEVICE_PROBE_H

#include "device/device.h"

EXTERN_C_BEGIN

/*
 * Ceilings: the best that a device can do, measured with the plainest code that
 * does it. Lookups are compared with them. A probe allocates its own memory and
 * frees it again.
 */
enum probe_kind {
    PROBE_READ, /* reads n_bytes in sequence */
    PROBE_COPY, /* copies n_bytes; each counts twice */
    /* Reads and sums n rows of row_bytes, drawn uniformly from n_bytes. */
    PROBE_GATHER,
    /* Sorts n pairs of key and 32-bit value by key_bits of the key. */
    PROBE_SORT,
    PROBE_LAUNCH /* one piece of work that does nothing */
};
extern const char *const probe_kind_names[]; /* "read", "copy" ... NULL */

struct probe {
    enum probe_kind kind;
    uint64_t n_bytes;   /* READ, COPY; GATHER: the footprint; else 0 */
    uint64_t n;         /* GATHER: rows; SORT: pairs; else 0 */
    uint32_t row_bytes; /* GATHER: a multiple of 16 */
    uint32_t key_bits;  /* SORT: 1 .. 64; above 32 the keys have 8 bytes */
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

/* Result of a probe. */
struct ceiling {
    struct probe probe;
    struct timing timing;
    uint32_t n_iterations;
    unsigned flags; /* SAMPLE_THROTTLED */
};

/* Measures a probe: median and deciles of n_iterations runs after a warm-up.
 * The last-level cache is flushed before each run. Fails with ERR_DEVICE if
 * memory is short. */
int probe_run(struct ceiling *ceiling, struct device *device,
              const struct probe *probe, unsigned n_iterations,
              struct err *err) MUST_CHECK;

EXTERN_C_END

#endif
