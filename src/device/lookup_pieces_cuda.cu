/* SPDX-License-Identifier: MIT */
#include "device/lookup_runs.cuh"

/*
 * Sums the later pieces of long runs, then their later parts. A run is the list
 * of all lookups of one row; it is cut into parts and these into pieces
 * (lookup.h). A piece or part is "later" if it is not the first of its run.
 *
 * The lookups of a table are divided into blocks that are as long as a piece
 * (or a part), so that at most one later piece (or part) starts in each block.
 * Each group of lanes handles one block. A span has as many blocks as a warp
 * has lanes. If the groups of a table have G lanes, its spans therefore keep G
 * warps busy each. The other warps return at once.
 */

/* Number of gradients that a group loads at the same time. It is higher than in
 * the other kernels, because here only few groups have work, and they have much
 * of it. */
#define N_IN_FLIGHT 8

/* A later piece or part of a run. */
struct cut {
    /* its lookups [begin, end); empty if there is no such piece or part */
    uint32_t begin, end;
};

/* Returns the first lookup of the run that contains lookup `in`, but at least
 * `begin`. */
static __device__ uint32_t run_begin(const struct backward_job &job,
                                     uint32_t begin, uint32_t in)
{
    const uint32_t key = key_at(job, in);

    while (begin < in) {
        uint32_t middle = begin + (in - begin) / 2;

        if (key_at(job, middle) == key)
            in = middle;
        else
            begin = middle + 1;
    }
    return in;
}

/* Returns the end of the run that contains lookup i, but at most `end`. Mostly
 * the result is `end`. */
static __device__ uint32_t run_end(const struct backward_job &job, uint32_t i,
                                   uint32_t end)
{
    const uint32_t key = key_at(job, i);

    if (key_at(job, end - 1) == key)
        return end;
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
 * Returns the later piece or part that starts in [block, block + size), the
 * block of this group. The blocks of all groups of the warp begin at `first`.
 *
 * To find the piece, the function must know where the run began that reaches
 * into the block. Only one run can begin before `first` and reach into several
 * blocks of the warp; all lanes search for its begin together. All other runs
 * begin near their blocks, and each group finds its own.
 */
static __device__ struct cut cut_of(const struct backward_job &job,
                                    const struct lookup_span &span,
                                    uint32_t first, uint32_t block,
                                    uint32_t size)
{
    const uint32_t base = first - (first > span.table_begin);
    const bool goes_on = block > span.table_begin && block < span.end &&
                         key_at(job, block) == key_at(job, block - 1);
    const bool is_far = goes_on && key_at(job, block) == key_at(job, base);
    struct cut cut = {0, 0};
    uint32_t begin = base;

    if (__any_sync(ALL_LANES, is_far))
        begin -= count_along(job, base, -1, base - span.table_begin);
    if (!goes_on)
        return cut;
    if (!is_far)
        begin = run_begin(job, base, block - 1);
    begin += (block - begin + size - 1) / size * size;
    if (begin >= span.table_end || key_at(job, begin) != key_at(job, block))
        return cut;
    cut.begin = begin;
    cut.end =
        run_end(job, begin,
                begin + size < span.table_end ? begin + size : span.table_end);
    return cut;
}

/* Sums the later piece or part that starts in the group's block. The groups of
 * a warp have adjacent blocks. */
template <bool is_half, uint32_t size>
static __device__ void sum_cuts(const struct backward_job &job)
{
    const uint32_t warp = blockIdx.x * BLOCK_WARPS + threadIdx.x / 32;
    const struct lookup_span span =
        lookup_span_of(job.offsets, job.n_tables, job.batch, 32 * size,
                       warp / job.max_group_lanes);
    const struct cuda_table table = job.tables[span.table_idx];
    const uint32_t lanes = table.group_lanes, lane = threadIdx.x & (lanes - 1);
    const uint32_t first =
        span.begin + warp % job.max_group_lanes * (32 / lanes) * size;
    struct cut cut;

    if (warp % job.max_group_lanes >= lanes || first >= span.end)
        return;
    cut = cut_of(job, span, first, first + (threadIdx.x & 31) / lanes * size,
                 size);
    if (cut.begin == cut.end)
        return;
    for (uint32_t quad = lane; quad < table.dim / 4; quad += lanes) {
        float4 *partial = (float4 *)partial_of(job, span, cut.begin) + quad;
        float4 sum;

        if (size == LOOKUP_RUN_PIECE) {
            sum = sum_grads<is_half, N_IN_FLIGHT>(job, table, span.table_idx,
                                                  quad, job.bags + cut.begin,
                                                  cut.end - cut.begin);
        } else {
            sum = __ldcg(partial);
            add_partials(sum, (const float *)partial + job.max_dim,
                         (cut.end - cut.begin - 1) / LOOKUP_RUN_PIECE,
                         job.max_dim);
        }
        __stcg(partial, sum);
    }
}

template <bool is_half>
static __global__ void __launch_bounds__(BLOCK_THREADS, 6)
    lookup_pieces_kernel(struct backward_job job)
{
    sum_cuts<is_half, LOOKUP_RUN_PIECE>(job);
}

/* Sums the later parts of long runs. The sum of a part replaces the sum of its
 * first piece. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 6)
    lookup_parts_kernel(struct backward_job job)
{
    sum_cuts<false, LOOKUP_RUN_PART>(job);
}

static int launch_cuts(struct lookup_cuda *self, const struct backward_job *job,
                       void (*kernel)(struct backward_job), uint32_t n_lookups,
                       uint32_t size, struct err *err)
{
    const uint64_t n_spans =
        lookup_n_spans(n_lookups, job->n_tables, 32 * size);

    return CUDA(launch(kernel, blocks_for_warps(n_spans * job->max_group_lanes),
                       dim3(BLOCK_THREADS), 0, self->cuda->stream, *job),
                err);
}

int lookup_cuda_pieces(struct lookup_cuda *self, const struct backward_job *job,
                       uint32_t n_lookups, struct err *err)
{
    if (launch_cuts(self, job,
                    self->base.output == PRECISION_FP16
                        ? lookup_pieces_kernel<true>
                        : lookup_pieces_kernel<false>,
                    n_lookups, LOOKUP_RUN_PIECE, err))
        return -1;
    if (n_lookups <= LOOKUP_RUN_PART) /* no run can have two parts */
        return 0;
    return launch_cuts(self, job, lookup_parts_kernel, n_lookups,
                       LOOKUP_RUN_PART, err);
}
