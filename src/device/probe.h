/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_PROBE_H
#define NEUROSHARD_DEVICE_PROBE_H

#include "device/device.h"

EXTERN_C_BEGIN

/*
 * What a device can do at best, by the plainest code that does it: the
 * ceilings that look-ups are held against. A probe takes its own memory and
 * leaves nothing behind.
 */
enum probe_kind {
    PROBE_READ,   /* n_bytes, one behind the other */
    PROBE_COPY,   /* n_bytes to another place: counted twice */
    PROBE_GATHER, /* n rows of row_bytes, uniformly from n_bytes; summed up */
    PROBE_SORT,   /* n pairs of key and 32-bit value, key_bits of the key */
    PROBE_LAUNCH  /* one piece of work that does nothing */
};
extern const char *const probe_kind_names[]; /* "read", "copy" ... NULL */

struct probe {
    enum probe_kind kind;
    uint64_t n_bytes;   /* READ, COPY; GATHER: the footprint; else 0 */
    uint64_t n;         /* GATHER: rows; SORT: pairs; else 0 */
    uint32_t row_bytes; /* GATHER: a multiple of 16 */
    uint32_t key_bits;  /* SORT: 1 .. 64; above 32 the keys have 8 bytes */
};

/* Bytes that it moves: what gbps is made of. READ n_bytes, COPY 2 n_bytes,
 * GATHER n (row_bytes + 4), SORT by passes of 8 bits, each reading and writing
 * the pairs; LAUNCH 0. */
double probe_moved_bytes(const struct probe *probe);
/* Device memory that it takes. */
uint64_t probe_memory_bytes(const struct probe *probe);

/* A probe and what it took. */
struct ceiling {
    struct probe probe;
    struct timing timing;
    uint32_t n_iterations;
    unsigned flags; /* SAMPLE_THROTTLED */
};

/* Median and deciles of n_iterations runs after a warm-up, the last-level
 * cache flushed before each. ERR_DEVICE where memory is short. */
int probe_run(struct ceiling *ceiling, struct device *device,
              const struct probe *probe, unsigned n_iterations,
              struct err *err) MUST_CHECK;

EXTERN_C_END

#endif
