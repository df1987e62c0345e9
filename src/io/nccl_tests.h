/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_NCCL_TESTS_H
#define NEUROSHARD_IO_NCCL_TESTS_H

#include "base/mem.h"

/*
 * Reader of the output of alltoall_perf from nccl-tests (2.0 to 2.19) or
 * rccl-tests. The output may be part of a job's log. The reader skips lines of
 * other programs, and prefixes that launchers and log collectors put before a
 * line.
 *
 * Hosts and devices come from the lines that list ranks. The columns of the
 * rows come from the line with "size" and "algbw"; old versions leave the
 * columns redop and root blank. The reader checks the following:
 *
 * - A row's bandwidth agrees with its size and time, its bus bandwidth with the
 * number of ranks, and its count of elements with its size.
 * - The sizes agree with minBytes, maxBytes and step of the first line. If that
 * line is missing, the mean over the rows must agree with "Avg bus bandwidth".
 * - No value was wrong or out of bounds.
 *
 * If a log holds several tests, the last complete one is used.
 *
 * A row's size is the number of bytes that each rank sends to all ranks, itself
 * included, which is also the meaning of `max_bytes` in struct comm_sample. A
 * row's time is the mean over iterations of the out-of-place exchange.
 */
struct nccl_row {
    uint64_t bytes; /* size in bytes, > 0 */
    double us;      /* time in microseconds, > 0 */
};

struct nccl_tests {
    /* name of rank 0's device, such as "NVIDIA H100 80GB HBM3" */
    const char *device;
    uint32_t n_ranks; /* number of ranks, >= 2 */
    uint32_t n_hosts;
    /* [n_rows], n_rows >= 1; all arrays and strings live in the arena */
    struct nccl_row *rows;
    size_t n_rows;
    const char *doubt; /* message about a later, incomplete test; or NULL */
};

/* Parses a test's output. The text need not end in a NUL. ERR_INPUT messages
 * name the line. Causes: the output of another collective, ranks out of order,
 * an incomplete row, a row before the line with the column names, wrong data,
 * or two numbers that do not agree. */
int nccl_tests_parse(struct nccl_tests *out, const char *text, size_t len,
                     const char *source, struct arena *arena,
                     struct err *err) MUST_CHECK;

#endif
