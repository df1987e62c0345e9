/* SPDX-License-Identifier: MIT */
#include "device/lookup_runs.cuh"

/* Gradients of a group that are on their way at once; and sums of pieces, of
 * which a row that is in every bag has thousands, all added by one group. */
#define N_IN_FLIGHT 4
#define PIECES_IN_FLIGHT 8
/* A span has a look-up for each lane of a warp. */
#define SPAN 32u

/* A run as its group sees it; idle groups have n_first 0. */
struct run {
    uint32_t begin;
    uint32_t key;
    uint32_t n_first; /* look-ups of the first piece */
};

static __device__ inline char *weight_row(const struct cuda_table &table,
                                          uint32_t row)
{
    return table.d_weight + (uint64_t)row * table.dim * (table.is_half ? 2 : 4);
}

/* Starts to bring a run's row, its state and its first gradient near: most
 * runs are short, and a group would wait for each of them. */
template <bool is_half>
static __device__ void
prefetch_run(const struct backward_job &job, const struct lookup_span &span,
             const struct cuda_table &table, const struct run &run)
{
    const uint32_t lanes = table.group_lanes, n_quads = table.dim / 4;
    const uint32_t row = run.key - (uint32_t)table.first_row;
    const char *weight = weight_row(table, row);
    const struct grads grads = grads_of(job, table, span.table_idx, 0, is_half);
    const char *grad = grads.column + (uint64_t)(__ldg(job.bags + run.begin) -
                                                 grads.first_bag) *
                                          grads.stride;

    if (job.is_adagrad)
        prefetch_l2(table.d_state + row);
    for (uint32_t quad = threadIdx.x & (lanes - 1); quad < n_quads;
         quad += lanes) {
        prefetch_l2(weight + quad_offset(quad, table.is_half));
        prefetch_l2(grad + quad_offset(quad, is_half));
    }
}

/* Adds the sums of the later pieces, in order. They are read before it is
 * known whether they belong to the run. */
static __device__ void add_pieces(float4 &sum, const struct backward_job &job,
                                  const struct lookup_span &span,
                                  const struct run &run, uint32_t quad)
{
    uint32_t i = run.begin + LOOKUP_RUN_PIECE;

    for (;;) {
        float4 quads[PIECES_IN_FLIGHT];
        bool is_own[PIECES_IN_FLIGHT];

        for (uint32_t u = 0; u < PIECES_IN_FLIGHT; u++) {
            uint32_t at = i + u * LOOKUP_RUN_PIECE;

            is_own[u] = at < span.table_end && key_at(job, at) == run.key;
            quads[u] =
                at < span.table_end
                    ? __ldg((const float4 *)partial_of(job, span, at) + quad)
                    : quad_zero();
        }
        for (uint32_t u = 0; u < PIECES_IN_FLIGHT; u++) {
            if (!is_own[u])
                return;
            quad_add(sum, quads[u]);
        }
        i += PIECES_IN_FLIGHT * LOOKUP_RUN_PIECE;
    }
}

/*
 * One run for each group of the warp: sums its gradients, slice by slice of
 * 4 * lanes columns, keeps the sums in shared memory, where only the thread
 * itself reads them, and makes the optimizer's step.
 */
template <bool is_half>
static __device__ void
update_runs(const struct backward_job &job, const struct lookup_span &span,
            const struct cuda_table &table, const struct run &run, float4 *room)
{
    const uint32_t lanes = table.group_lanes, n_quads = table.dim / 4;
    const uint32_t lane = threadIdx.x & (lanes - 1);
    const uint32_t row = run.key - (uint32_t)table.first_row;
    char *weight = weight_row(table, row);
    float4 squares = quad_zero();
    float rate = job.learning_rate;
    uint32_t n_slices = 0;

    for (uint32_t quad = lane; quad < n_quads + lane; quad += lanes) {
        float4 sum = quad_zero();

        if (run.n_first && quad < n_quads) {
            sum = sum_grads<is_half, N_IN_FLIGHT>(
                grads_of(job, table, span.table_idx, quad, is_half),
                job.bags + run.begin, run.n_first);
            if (run.n_first == LOOKUP_RUN_PIECE)
                add_pieces(sum, job, span, run, quad);
        }
        room[n_slices++ * BLOCK_THREADS] = sum;
        if (job.is_adagrad) {
            __syncwarp();
            squares_add(squares, sum, lanes);
        }
    }
    if (job.is_adagrad)
        rate =
            adagrad_rate(run.n_first ? table.d_state + row : NULL,
                         squares_mean(squares, lanes, table.dim), rate, lanes);
    if (!run.n_first)
        return;
    for (uint32_t quad = lane; quad < n_quads; quad += lanes) {
        void *at = weight + quad_offset(quad, table.is_half);
        float4 w = quad_load(at, table.is_half);

        quad_store(at, quad_step(w, rate, *room), table.is_half);
        room += BLOCK_THREADS;
    }
}

/* How many look-ups from `begin` on, up to a piece, are of this row. The warp
 * counts together. */
static __device__ uint32_t count_same(const struct backward_job &job,
                                      uint32_t begin, uint32_t end,
                                      uint32_t key)
{
    uint32_t n = 0, same;

    do {
        uint32_t i = begin + n + (threadIdx.x & 31);

        same = __ballot_sync(ALL_LANES, i < end && key_at(job, i) == key);
        n += same == ALL_LANES ? 32 : (uint32_t)__ffs((int)~same) - 1;
    } while (same == ALL_LANES && n < LOOKUP_RUN_PIECE);
    return n;
}

/*
 * A warp applies the runs that start in its span of 32 look-ups: a lane looks
 * at each, and each group takes the runs that start at its lanes' look-ups,
 * one after the other, each being fetched while the one before it is applied.
 */
template <bool is_half>
static __global__ void __launch_bounds__(BLOCK_THREADS, 6)
    lookup_update_kernel(struct backward_job job)
{
    DYNAMIC_SHARED(float4, room);
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t warp = blockIdx.x * BLOCK_WARPS + threadIdx.x / 32;
    const struct lookup_span span =
        lookup_span_of(job.offsets, job.n_tables, job.batch, SPAN, warp);
    const struct cuda_table &table = job.tables[span.table_idx];
    const uint32_t i = span.begin + lane;
    uint32_t n, key, heads, own, n_after = 0;
    struct run run;

    if (span.begin >= span.end)
        return;
    n = (uint32_t)(span.end - span.begin);
    key = lane < n ? key_at(job, i) : 0;
    heads = __ballot_sync(ALL_LANES, lane < n && (i == span.table_begin ||
                                                  key_at(job, i - 1) != key));
    if (heads)
        n_after = count_same(job, span.end, span.table_end,
                             __shfl_sync(ALL_LANES, key, (int)n - 1));
    own = heads;
    if (table.group_lanes < 32)
        own &= ((1u << table.group_lanes) - 1)
               << (lane & ~(table.group_lanes - 1));
    run.n_first = 0;
    do {
        uint32_t first = own ? (uint32_t)__ffs((int)own) - 1 : 0;
        uint32_t later = (heads >> first) & ~1u;
        struct run next;

        next.begin = span.begin + first;
        next.key = __shfl_sync(ALL_LANES, key, (int)first);
        next.n_first =
            later ? (uint32_t)__ffs((int)later) - 1 : n - first + n_after;
        if (next.n_first > LOOKUP_RUN_PIECE)
            next.n_first = LOOKUP_RUN_PIECE;
        if (own)
            prefetch_run<is_half>(job, span, table, next);
        else
            next.n_first = 0;
        own &= own - 1;
        if (__any_sync(ALL_LANES, run.n_first != 0))
            update_runs<is_half>(job, span, table, run, room + threadIdx.x);
        run = next;
    } while (__any_sync(ALL_LANES, run.n_first != 0));
}

int lookup_cuda_update(struct lookup_cuda *self, const struct backward_job *job,
                       uint32_t n_lookups, struct err *err)
{
    const uint32_t n_spans = lookup_n_spans(n_lookups, job->n_tables, SPAN);

    return CUDA(launch(self->base.output == PRECISION_FP16
                           ? lookup_update_kernel<true>
                           : lookup_update_kernel<false>,
                       blocks_for_warps(n_spans), dim3(BLOCK_THREADS),
                       lookup_room_bytes(job->max_dim, BLOCK_THREADS),
                       self->cuda->stream, *job),
                err);
}
