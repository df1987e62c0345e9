/* SPDX-License-Identifier: MIT */
#include "device/lookup_runs.cuh"

/* Gradients of a group that are on their way at once: here there are few groups
 * with much to do. */
#define N_IN_FLIGHT 8
/* A span has a piece for each lane of a warp. */
#define SPAN (32u * LOOKUP_RUN_PIECE)

/* First look-up in [begin, end) of the run that `in` is in; the table is
 * sorted. Gallops back, then bisects. */
static __device__ uint32_t run_begin(const struct backward_job &job,
                                     uint32_t begin, uint32_t in)
{
    const uint32_t key = key_at(job, in);
    uint32_t out, reach = LOOKUP_RUN_PIECE;

    while (in - begin >= reach && key_at(job, in - reach) == key) {
        in -= reach;
        reach *= 2;
    }
    out = in - begin >= reach ? in - reach + 1 : begin;
    while (out < in) {
        uint32_t middle = out + (in - out) / 2;

        if (key_at(job, middle) == key)
            in = middle;
        else
            out = middle + 1;
    }
    return in;
}

/* End of the part of i's run that lies before `end`. */
static __device__ uint32_t run_end(const struct backward_job &job, uint32_t i,
                                   uint32_t end)
{
    const uint32_t key = key_at(job, i);

    while (i < end) {
        uint32_t middle = i + (end - i) / 2;

        if (key_at(job, middle) == key)
            i = middle + 1;
        else
            end = middle;
    }
    return i;
}

/*
 * Sums of the later pieces of long runs. One of them may start in each block
 * of LOOKUP_RUN_PIECE look-ups of a table, and each group of lanes looks after
 * one block. A span has as many blocks as a warp has lanes, so that a table
 * whose groups have G lanes keeps G warps busy; the other warps leave.
 */
template <bool is_half>
static __global__ void __launch_bounds__(BLOCK_THREADS, 6)
    lookup_pieces_kernel(struct backward_job job)
{
    const uint32_t warp = blockIdx.x * BLOCK_WARPS + threadIdx.x / 32;
    const struct lookup_span span = lookup_span_of(
        job.offsets, job.n_tables, job.batch, SPAN, warp / job.max_group_lanes);
    const struct cuda_table &table = job.tables[span.table_idx];
    const uint32_t lanes = table.group_lanes, lane = threadIdx.x & (lanes - 1);
    const uint32_t part = (uint32_t)(warp % job.max_group_lanes);
    uint32_t block, start, stop;

    block = span.begin + (part * (32 / lanes) + (threadIdx.x & 31) / lanes) *
                             LOOKUP_RUN_PIECE;
    if (part >= lanes || block == span.table_begin || block >= span.end ||
        key_at(job, block) != key_at(job, block - 1))
        return;
    start = run_begin(job, span.table_begin, block - 1);
    start += (block - start + LOOKUP_RUN_PIECE - 1) / LOOKUP_RUN_PIECE *
             LOOKUP_RUN_PIECE;
    if (start >= span.table_end || key_at(job, start) != key_at(job, block))
        return;
    stop = run_end(job, start,
                   start + LOOKUP_RUN_PIECE < span.table_end
                       ? start + LOOKUP_RUN_PIECE
                       : span.table_end);
    for (uint32_t quad = lane; quad < table.dim / 4; quad += lanes) {
        struct grads grads =
            grads_of(job, table, span.table_idx, quad, is_half);
        float4 sum = sum_grads<is_half, N_IN_FLIGHT>(grads, job.bags + start,
                                                     (uint32_t)(stop - start));

        ((float4 *)partial_of(job, span, start))[quad] = sum;
    }
}

int lookup_cuda_pieces(struct lookup_cuda *self, const struct backward_job *job,
                       uint32_t n_lookups, struct err *err)
{
    const uint64_t n_spans = lookup_n_spans(n_lookups, job->n_tables, SPAN);

    return CUDA(launch(self->base.output == PRECISION_FP16
                           ? lookup_pieces_kernel<true>
                           : lookup_pieces_kernel<false>,
                       blocks_for_warps(n_spans * job->max_group_lanes),
                       dim3(BLOCK_THREADS), 0, self->cuda->stream, *job),
                err);
}
