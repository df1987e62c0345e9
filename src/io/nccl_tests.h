/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_NCCL_TESTS_H
#define NEUROSHARD_IO_NCCL_TESTS_H

#include "base/mem.h"

/*
 * Output of alltoall_perf of nccl-tests (2.0 to 2.19) or rccl-tests, also in
 * the log of a job: what launchers and log collectors put before its lines is
 * skipped, and so are lines of other programs.
 *
 * The lines that list ranks tell hosts and devices; the line with "size" and
 * "algbw" tells the columns of the rows, of which old versions leave redop and
 * root blank. These must agree:
 *
 *   - a row's bandwidth with its size and time, its bus bandwidth with the
 *     number of ranks, its count of elements with its size;
 *   - the sizes with minBytes, maxBytes and step of the first line, or, if that
 *     line is missing, their mean with "Avg bus bandwidth";
 *   - no value was wrong or out of bounds.
 *
 * Of several tests in a log the last one that is whole is read.
 *
 * A size is what each rank sends in all, to itself too, which is the max_bytes
 * of a struct comm_sample; a time is the mean over iterations, out of place.
 */
struct nccl_row {
    uint64_t bytes; /* > 0 */
    double us;      /* > 0 */
};

struct nccl_tests {
    const char *device; /* of rank 0, "NVIDIA H100 80GB HBM3" */
    uint32_t n_ranks;   /* >= 2 */
    uint32_t n_hosts;
    struct nccl_row *rows; /* [n_rows], n_rows >= 1, in the arena like all */
    size_t n_rows;
    const char *doubt; /* sentence about a later test that is not whole; NULL */
};

/* text need not end in a NUL. ERR_INPUT names the line of another collective's
 * output, of ranks that are no list, of a row that is cut, has no columns or
 * wrong data, and of two numbers that do not agree. */
int nccl_tests_parse(struct nccl_tests *out, const char *text, size_t len,
                     const char *source, struct arena *arena,
                     struct err *err) MUST_CHECK;

#endif
