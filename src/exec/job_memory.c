/* SPDX-License-Identifier: MIT */
#include "exec/job_memory.h"

#include "base/host_device.h"

#include <inttypes.h>

/* Returns the peak of the whole GPU. A peak of PyTorch's allocator lacks the
 * context and the buffers of NCCL, so assumed ones are added. */
static uint64_t whole_peak(const struct peak *peak, uint64_t nccl_bytes)
{
    if (peak->used)
        return peak->used + peak->failed;
    return max_u64(peak->reserved, peak->allocated) + nccl_bytes +
           JOB_CONTEXT_BYTES;
}

void job_memory_init(struct job_memory *job, const struct plan *plan,
                     const struct peaks *peaks, struct arena *arena)
{
    const struct cluster *cluster = &plan->problem.cluster;

    *job = (struct job_memory){
        .ranks = ARENA_NEW(arena, struct job_memory_rank, peaks->n)};
    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        const struct memory_items *memory = &plan->devices[r].memory;
        const struct peak *peak = &peaks->ranks[r];
        struct job_memory_rank *rank = &job->ranks[job->n];
        const uint64_t counted = memory->total - memory->nccl - memory->reserve;

        if (!peak->used && !peak->reserved && !peak->allocated)
            continue;
        *rank =
            (struct job_memory_rank){.rank = arena_printf(arena, "%" PRIu32, r),
                                     .counted = counted,
                                     .reserve = memory->nccl + memory->reserve,
                                     .capacity = cluster->memory_bytes[r],
                                     .peak = *peak,
                                     .needed = whole_peak(peak, memory->nccl)};
        rank->rest = rank->needed > counted ? rank->needed - counted : 0;
        job->is_completed |= !peak->used;
        if (peak->failed || rank->needed > rank->capacity)
            rank->note = "ran out of memory";
        job->n++;
    }
    job->out = job->n;
    for (size_t i = 0; i < job->n; i++) {
        const struct job_memory_rank *rank = &job->ranks[i];

        if (rank->rest > job->ranks[job->worst].rest)
            job->worst = i;
        if (rank->note &&
            (job->out == job->n || rank->rest > job->ranks[job->out].rest))
            job->out = i;
    }
}
