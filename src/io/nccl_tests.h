/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_NCCL_TESTS_H
#define NEUROSHARD_IO_NCCL_TESTS_H

#include "base/mem.h"

/*
 * What alltoall_perf of nccl-tests (2.0 to 2.19) or rccl-tests prints, alone or
 * by a launcher that marks lines with "[1,0]<stdout>:". Lines that list ranks
 * tell hosts and devices, the line with "size" and "algbw" what columns the
 * rows have; all others are passed over.
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
};

/* text need not end in a NUL. ERR_INPUT names the line of another collective's
 * output, of ranks that are no list, and of a row that is cut, has no columns,
 * no such bandwidth as its time makes, or wrong data. */
int nccl_tests_parse(struct nccl_tests *out, const char *text, size_t len,
                     const char *source, struct arena *arena,
                     struct err *err) MUST_CHECK;

#endif
