/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PEAK_H
#define NEUROSHARD_CORE_PEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Peak memory of a rank of a real job. All sizes are in bytes. */
struct peak {
    /* The first three are 0 if they are unknown. */
    uint64_t allocated; /* tensors in PyTorch's allocator */
    uint64_t reserved;  /* PyTorch's allocator, with memory it holds free */
    uint64_t used;      /* the whole GPU: all processes, context, NCCL */
    /* size of the allocation that failed; `used` and `allocated` are those at
     * this moment. 0: the GPU did not run out of memory */
    uint64_t failed;
};

struct peaks {
    uint32_t n_ranks; /* number of ranks of the job */
    /* true: the job has one host, so its rank is the number of the GPU */
    bool is_one_host;
    struct peak *ranks; /* [n_ranks] */
    size_t n;           /* number of ranks with a peak */
};

/* Largest size in bytes that a peak may have: 1 PiB. */
#define PEAK_MAX_BYTES ((uint64_t)1 << 50)

#endif
