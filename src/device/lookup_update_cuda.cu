/* SPDX-License-Identifier: MIT */
#include "device/lookup_runs.cuh"

/* Number of gradients that a group loads at the same time. */
#define N_IN_FLIGHT 4
/* Number of lookups of a span: one for each lane of a warp. A piece has the
 * same number of lookups (LOOKUP_RUN_PIECE). Only the last run that starts in a
 * span can therefore have more than one piece. */
#define SPAN ((uint32_t)LOOKUP_RUN_PIECE)

/* A run (all lookups of one row) that a group of lanes is to process. n_first
 * is 0 in groups without a run. */
struct row_run {
    uint32_t begin;
    uint32_t key;
    uint32_t n_first; /* number of lookups of the run's first piece */
};

static __device__ inline char *weight_row(const struct cuda_table &table,
                                          uint32_t row)
{
    return table.d_weight + (uint64_t)row * table.dim * (table.is_half ? 2 : 4);
}

/* Prefetches the weights and the state of a run's row and the first gradient of
 * the run. Most runs are short, so a group would otherwise wait for each of the
 * three. */
template <bool is_half>
static __device__ void
prefetch_run(const struct backward_job &job, const struct lookup_span &span,
             const struct cuda_table &table, const struct row_run &run)
{
    const uint32_t lanes = table.group_lanes, n_quads = table.dim / 4;
    const uint32_t row = run.key - (uint32_t)table.first_row;
    const char *weight = weight_row(table, row);
    const char *grad = grad_at<is_half>(job, table, span.table_idx, 0,
                                        __ldg(job.bags + run.begin));

    if (job.is_adagrad)
        prefetch_l2(table.d_state + row);
    for (uint32_t quad = threadIdx.x & (lanes - 1); quad < n_quads;
         quad += lanes) {
        prefetch_l2(weight + quad_offset(quad, table.is_half));
        prefetch_l2(grad + quad_offset(quad, is_half));
    }
}

/* Adds to `sum`, the sum of a run's first piece, the sums of the later pieces
 * of its first part, then the sums of its later parts. */
static __device__ void add_later(float4 &sum, const struct backward_job &job,
                                 const struct lookup_span &span,
                                 const struct row_run &run, uint32_t n_later,
                                 uint32_t quad)
{
    const uint32_t a_part = LOOKUP_RUN_PART / LOOKUP_RUN_PIECE;
    const float *partials = partial_of(job, span, run.begin) + quad * 4;

    add_partials(sum, partials + job.max_dim,
                 n_later < a_part ? n_later : a_part - 1, job.max_dim);
    add_partials(sum, partials + (uint64_t)a_part * job.max_dim,
                 n_later / a_part, (uint64_t)a_part * job.max_dim);
}

/*
 * Updates one row per group of the warp. The group sums the gradients of its
 * run, one slice of 4 * lanes columns after the other. The sums are kept in
 * shared memory, where each thread reads only its own sums. Then the group
 * makes the optimizer step. The row's state and the first slice of its weights
 * are loaded while the gradients are summed.
 */
template <bool is_half>
static __device__ void
update_runs(const struct backward_job &job, const struct lookup_span &span,
            const struct cuda_table &table, const struct row_run &run,
            uint32_t n_later, float4 *room)
{
    const uint32_t lanes = table.group_lanes, n_quads = table.dim / 4;
    const uint32_t lane = threadIdx.x & (lanes - 1);
    const uint32_t row = run.key - (uint32_t)table.first_row;
    const bool is_half_weight = table.is_half;
    char *weight = weight_row(table, row);
    float4 squares = quad_zero(), w = quad_zero();
    float rate = job.learning_rate, state = 0;
    uint32_t n_slices = 0;

    if (run.n_first && lane < n_quads)
        w = quad_load(weight + quad_offset(lane, is_half_weight),
                      is_half_weight);
    if (job.is_adagrad && run.n_first && !lane)
        state = __ldcg(table.d_state + row);
    for (uint32_t quad = lane; quad < n_quads + lane; quad += lanes) {
        float4 sum = quad_zero();

        if (run.n_first && quad < n_quads) {
            sum = sum_grads<is_half, N_IN_FLIGHT>(job, table, span.table_idx,
                                                  quad, job.bags + run.begin,
                                                  run.n_first);
            if (run.n_first == LOOKUP_RUN_PIECE)
                add_later(sum, job, span, run, n_later, quad);
        }
        room[n_slices++ * BLOCK_THREADS] = sum;
        if (job.is_adagrad) {
            __syncwarp();
            squares_add(squares, sum, lanes);
        }
    }
    if (job.is_adagrad)
        rate =
            adagrad_rate(run.n_first ? table.d_state + row : NULL, state,
                         squares_mean(squares, lanes, table.dim), rate, lanes);
    if (!run.n_first)
        return;
    for (uint32_t quad = lane; quad < n_quads; quad += lanes) {
        char *pos = weight + quad_offset(quad, is_half_weight);

        if (quad != lane)
            w = quad_load(pos, is_half_weight);
        quad_store(pos, quad_step(w, rate, *room), is_half_weight);
        room += BLOCK_THREADS;
    }
}

/*
 * Updates the rows of the runs that start in a span of 32 lookups. Each warp
 * handles one span. Each lane examines one lookup of the span. Each group of
 * lanes processes, one after the other, the runs that start at the lookups of
 * its lanes. While it applies one run, it prefetches the next one.
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
    const struct cuda_table table = job.tables[span.table_idx];
    const uint32_t i = span.begin + lane;
    uint32_t n, key, heads, own, last, n_behind, n_last, n_later;
    struct row_run run = {0, 0, 0};

    if (span.begin >= span.end)
        return;
    n = (uint32_t)(span.end - span.begin);
    key = lane < n ? key_at(job, i) : 0;
    heads = __ballot_sync(ALL_LANES, lane < n && (i == span.table_begin ||
                                                  key_at(job, i - 1) != key));
    if (!heads)
        return;
    last = span.begin + 31 - (uint32_t)__clz((int)heads);
    n_behind = span.table_end - 1 - last;
    n_last = 1 + count_along(job, last, 1,
                             n_behind < SPAN - 1 ? n_behind : SPAN - 1);
    n_later = n_last < SPAN ? 0 : count_along(job, last, SPAN, n_behind / SPAN);
    own = heads;
    if (table.group_lanes < 32)
        own &= ((1u << table.group_lanes) - 1)
               << (lane & ~(table.group_lanes - 1));
    do {
        uint32_t first = own ? (uint32_t)__ffs((int)own) - 1 : 0;
        uint32_t later = (heads >> first) & ~1u;
        struct row_run next;

        next.begin = span.begin + first;
        next.key = __shfl_sync(ALL_LANES, key, (int)first);
        next.n_first = later ? (uint32_t)__ffs((int)later) - 1 : n_last;
        if (own)
            prefetch_run<is_half>(job, span, table, next);
        else
            next.n_first = 0;
        own &= own - 1;
        if (__any_sync(ALL_LANES, run.n_first != 0))
            update_runs<is_half>(job, span, table, run, n_later,
                                 room + threadIdx.x);
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
