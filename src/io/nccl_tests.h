/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_NCCL_TESTS_H
#define NEUROSHARD_IO_NCCL_TESTS_H

#include "base/mem.h"

/*
 * Reader of the output of alltoall_perf from nccl-tests (2.0 to 2.19) or
 * rccl-tests. The output may be part of a job's log: prefixes that launchers
 * and log collectors put before its lines are skipped, and so are lines of
 * other programs.
 *
 * Hosts and devices come from the lines that list ranks. The columns of the
 * rows come from the line with "size" and "algbw"; old versions leave the
 * columns redop and root blank. Checks:
 *
 *   - A row's bandwidth agrees with its size and time, its bus bandwidth with
 *     the number of ranks, and its count of elements with its size.
 *   - The sizes agree with minBytes, maxBytes and step of the first line. If
 *     that line is missing, the rows' mean must agree with "Avg bus bandwidth".
 *   - No value was wrong or out of bounds.
 *
 * If a log holds several tests, the last complete one is used.
 *
 * A size is the number of bytes that each rank sends to all ranks, itself
 * included; this is max_bytes of struct comm_sample. A time is the mean over
 * iterations, out of place.
 */
struct nccl_row {
    uint64_t bytes; /* size, > 0 */
    double us;      /* time, > 0 */
};

struct nccl_tests {
    const char *device; /* name of rank 0's device: "NVIDIA H100 80GB HBM3" */
    uint32_t n_ranks;   /* number of ranks, >= 2 */
    uint32_t n_hosts;
    /* [n_rows], n_rows >= 1; in the arena, like all the rest */
    struct nccl_row *rows;
    size_t n_rows;
    const char *doubt; /* message about a later, incomplete test; or NULL */
};

/* Parses a text, which need not end in a NUL. ERR_INPUT names the line. Causes:
 * the output of another collective, ranks out of order, an incomplete row, a
 * row before its column names, wrong data, or two numbers that do not agree. */
int nccl_tests_parse(struct nccl_tests *out, const char *text, size_t len,
                     const char *source, struct arena *arena,
                     struct err *err) MUST_CHECK;

#endif
