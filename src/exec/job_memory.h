/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_JOB_MEMORY_H
#define NEUROSHARD_EXEC_JOB_MEMORY_H

#include "core/peak.h"
#include "core/plan.h"

/*
 * Peak memory of a real training job, compared with the plan that the job uses.
 *
 * The plan counts some of the memory of a GPU: weights, optimizer, input,
 * outputs, and the dense part if it is known. The rest is the CUDA context, the
 * buffers of NCCL, fragments of the allocator, an unknown dense part, and
 * errors of the count. The rest must fit into the reserve. All sizes are in
 * bytes.
 */
struct job_memory_rank {
    const char *rank;  /* number of the rank, such as "3" */
    uint64_t counted;  /* by the plan, without its reserve */
    uint64_t reserve;  /* reserve of the plan, with the buffers of NCCL */
    uint64_t capacity; /* memory of the GPU */
    struct peak peak;  /* as measured */
    uint64_t needed;   /* peak of the GPU, measured or completed */
    uint64_t rest;     /* needed - counted, at least 0 */
    const char *note;  /* "ran out of memory", or NULL */
};

struct job_memory {
    struct job_memory_rank *ranks; /* [n]: ranks with a peak, in the arena */
    size_t n;
    /* index of the rank that ran out of memory, with the largest rest of these;
     * n if no GPU needed more than its memory */
    size_t out;
    bool is_completed; /* true: some peaks do not include the whole GPU */
    /* Index of the rank with the largest rest. A reserve of this size is enough
     * for any plan, if the rest of no GPU becomes larger than this. */
    size_t worst;
};

/* Assumed size of a CUDA context with the kernels of PyTorch, an upper end:
 * published are 0.3 to 1.0 GB (PyTorch issues 28113, 54564, 81257, 107667). It
 * is added to peaks of PyTorch's allocator, which do not include it. */
#define JOB_CONTEXT_BYTES ((uint64_t)1 << 30)

/* Compares the peaks with the priced or unpriced plan, whose devices must have
 * memory. peaks->n must be >= 1. */
void job_memory_init(struct job_memory *job, const struct plan *plan,
                     const struct peaks *peaks, struct arena *arena);

#endif
