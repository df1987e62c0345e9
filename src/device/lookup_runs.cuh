/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_RUNS_CUH
#define NEUROSHARD_DEVICE_LOOKUP_RUNS_CUH

#include "device/lookup_quads.cuh"

/* Code shared by the kernels of a backward: functions that read the sorted
 * lookups and functions that sum their gradients. */

#define BLOCK_THREADS LOOKUP_UPDATE_THREADS
#define BLOCK_WARPS (BLOCK_THREADS / 32)

struct backward_job {
    const struct cuda_table *tables;
    const uint32_t *indices; /* for 64-bit indices, their low words */
    /* Row and bag of each lookup, sorted by row after LOOKUP_SORT. A key is the
     * number of the row over all tables; only its low word is read. */
    uint32_t *keys, *bags;
    const uint64_t *offsets;
    const char *grad;
    float *partials;      /* partial sums of runs; see partial_of */
    uint32_t grad_stride; /* bytes from one bag's gradient to the next */
    /* words from one index to the next, and from one key to the next: 1 or 2 */
    uint32_t index_step, key_step;
    uint32_t n_tables, batch, max_dim, max_group_lanes;
    float learning_rate;
    uint32_t is_adagrad;
};

static __device__ inline uint32_t key_at(const struct backward_job &job,
                                         uint32_t i)
{
    return __ldg(job.keys + (uint64_t)i * job.key_step);
}

/*
 * Returns how many of the n lookups from + step, from + 2 * step, ... are of
 * the same row as lookup `from`. Lookups are sorted by row, so the lookups of
 * this row come first in the list.
 *
 * The lanes of the warp search together. They look at 32 lookups at once. As
 * long as all 32 are of this row, they look at 32 more, which are 32 times as
 * far apart. Then they search for the end of the row in ever smaller steps.
 */
static __device__ inline uint32_t count_along(const struct backward_job &job,
                                              uint32_t from, int32_t step,
                                              uint32_t n)
{
    const uint32_t key = key_at(job, from), lane = threadIdx.x & 31;
    uint32_t low = 0, high = n; /* the function's result is in [low, high] */
    uint32_t apart = 1, widest;

    while (low < high) {
        const uint32_t pos = low + (lane + 1) * apart;
        const uint32_t n_same = (uint32_t)__popc(__ballot_sync(
            ALL_LANES,
            pos <= high && key_at(job, from + pos * (uint32_t)step) == key));

        low += n_same * apart;
        if (n_same < 32 && low + apart <= high)
            high = low + apart - 1;
        widest = (high - low + 31) / 32;
        apart = n_same == 32 && apart * 32 < widest ? apart * 32 : widest;
    }
    return low;
}

/* Returns the place of a partial sum. It is the sum of the piece that starts at
 * lookup i. Later it is the sum of the part that starts at lookup i, which
 * replaces the sum of the part's first piece. No two pieces share a place: the
 * pieces of one table start at least LOOKUP_RUN_PIECE lookups apart, and tables
 * have spans of their own. The places of one run are adjacent. */
static __device__ inline float *partial_of(const struct backward_job &job,
                                           const struct lookup_span &span,
                                           uint32_t i)
{
    uint32_t number =
        lookup_first_span(span.table_begin, span.table_idx, LOOKUP_RUN_PIECE) +
        (i - span.table_begin) / LOOKUP_RUN_PIECE;

    return job.partials + (uint64_t)number * job.max_dim;
}

/* Returns the address of the gradient of a bag, at one quad of the table's
 * columns. */
template <bool is_half>
static __device__ inline const char *
grad_at(const struct backward_job &job, const struct cuda_table &table,
        uint32_t table_idx, uint32_t quad_idx, uint32_t bag)
{
    return job.grad + quad_offset(table.out_begin / 4 + quad_idx, is_half) +
           (uint64_t)(bag - table_idx * job.batch) * job.grad_stride;
}

template <bool is_half>
static __device__ inline float4 load_grad(const char *pos)
{
    if (is_half)
        return quad_of_halves(__ldg((const uint2 *)pos));
    return __ldg((const float4 *)pos);
}

/* Returns the sum of the gradients of n bags. They are added to zero, in order,
 * n_in_flight at a time. If the last round has fewer gradients, zeros are added
 * in their place. Adding zeros changes nothing, because a sum that began with
 * +0 is never -0. */
template <bool is_half, uint32_t n_in_flight>
static __device__ float4 sum_grads(const struct backward_job &job,
                                   const struct cuda_table &table,
                                   uint32_t table_idx, uint32_t quad_idx,
                                   const uint32_t *bags, uint32_t n)
{
    uint32_t ids[n_in_flight];
    float4 sum = quad_zero();

    for (uint32_t u = 0; u < n_in_flight; u++)
        ids[u] = u < n ? __ldg(bags + u) : 0;
    for (uint32_t i = 0; i < n; i += n_in_flight) {
        float4 quads[n_in_flight];

        for (uint32_t u = 0; u < n_in_flight; u++)
            quads[u] = i + u < n ? load_grad<is_half>(grad_at<is_half>(
                                       job, table, table_idx, quad_idx, ids[u]))
                                 : quad_zero();
        for (uint32_t u = 0; u < n_in_flight; u++)
            if (i + n_in_flight + u < n)
                ids[u] = __ldg(bags + i + n_in_flight + u);
        for (uint32_t u = 0; u < n_in_flight; u++)
            quad_add(sum, quads[u]);
    }
    return sum;
}

/* Number of partial sums (of pieces or parts) that a group loads at the same
 * time. */
#define PARTIALS_IN_FLIGHT 8

/* Adds n partial sums to `sum`, in order. The partial sums are `stride` floats
 * apart in memory. If the last round has fewer than PARTIALS_IN_FLIGHT, zeros
 * are added instead, as in sum_grads. */
static __device__ inline void add_partials(float4 &sum, const float *partial,
                                           uint32_t n, uint64_t stride)
{
    for (uint32_t i = 0; i < n; i += PARTIALS_IN_FLIGHT) {
        float4 quads[PARTIALS_IN_FLIGHT];

        for (uint32_t u = 0; u < PARTIALS_IN_FLIGHT; u++, partial += stride)
            quads[u] =
                i + u < n ? __ldcg((const float4 *)partial) : quad_zero();
        for (uint32_t u = 0; u < PARTIALS_IN_FLIGHT; u++)
            quad_add(sum, quads[u]);
    }
}

static inline dim3 blocks_for_warps(uint64_t n_warps)
{
    return dim3((unsigned)((n_warps + BLOCK_WARPS - 1) / BLOCK_WARPS));
}

/*
 * Two functions that queue kernels of a backward on the device's stream.
 *
 *   lookup_cuda_pieces  sums the later pieces, then later parts, of long runs
 *   lookup_cuda_update  sums each run and updates its row
 */
int lookup_cuda_pieces(struct lookup_cuda *self, const struct backward_job *job,
                       uint32_t n_lookups, struct err *err) MUST_CHECK;
int lookup_cuda_update(struct lookup_cuda *self, const struct backward_job *job,
                       uint32_t n_lookups, struct err *err) MUST_CHECK;

#endif
