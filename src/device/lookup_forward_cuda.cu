/* SPDX-License-Identifier: MIT */
#include "device/lookup_quads.cuh"

/* Number of rows that a group loads at the same time. */
#define N_IN_FLIGHT 4
/* Number of warps per multiprocessor that a launch should have at least. */
#define WARPS_A_SM 64

struct forward_job {
    struct lookup_classes classes;
    const struct lookup_slice *slices;
    const uint32_t *indices; /* for 64-bit indices, their low words */
    const uint64_t *offsets;
    char *out;
    uint32_t batch, out_dim;
    uint32_t index_step; /* words from one index to the next: 1 or 2 */
    uint32_t is_half;    /* true: outputs are fp16; false: fp32 */
};

/* Returns quad q (four columns) of a vector that was read from a row. There is
 * one overload for each vector type. */
static __device__ inline float4 quad_of(float4 vec, uint32_t)
{
    return vec;
}

static __device__ inline float4 quad_of(uint2 vec, uint32_t)
{
    return quad_of_halves(vec);
}

static __device__ inline float4 quad_of(uint4 vec, uint32_t q)
{
    return quad_of_halves(q ? make_uint2(vec.z, vec.w)
                            : make_uint2(vec.x, vec.y));
}

static __device__ inline uint32_t low_word(const uint64_t *pos)
{
    return __ldg((const uint32_t *)pos);
}

/*
 * Sums up to bags_a_walk consecutive bags, starting with `bag`. Each lane sums
 * one vector of columns. The rows of all these bags form one list. N_IN_FLIGHT
 * rows are loaded, then added in order, and so on. Wherever a bag ends, its sum
 * is stored.
 *
 * The indices of the next rows and the end of the next bag are loaded one round
 * before they are needed. Only the low word of the end is loaded. The code does
 * no arithmetic on this word until it is needed, because the arithmetic would
 * wait for the load. All lanes of a group load the same index, which is one
 * memory access. Rows of the output need only the alignment of a quad.
 */
template <typename Vec, uint32_t n_quads>
static __device__ void
walk_bags(const struct forward_job &job, const struct lookup_class *own,
          const struct lookup_slice *slice, uint32_t bag, uint32_t lane)
{
    const char *column = slice->d_column + lane * sizeof(Vec);
    const uint32_t row_bytes = slice->row_bytes;
    const uint64_t *next_end =
        job.offsets + (uint64_t)slice->table_idx * job.batch + bag + 1;
    const uint64_t *last =
        next_end + min_u64(job.batch - bag, own->bags_a_walk);
    const uint64_t begin = __ldg(next_end - 1);
    const uint32_t n = (uint32_t)(__ldg(last - 1) - begin);
    const uint32_t *next = job.indices + begin * job.index_step;
    const bool is_half = job.is_half;
    const size_t out_stride = job.out_dim * (is_half ? 2 : 4);
    char *out = job.out + bag * out_stride +
                quad_offset(slice->out_begin / 4 + lane * n_quads, is_half);
    uint32_t bag_end = (uint32_t)(__ldg(next_end++) - begin);
    uint32_t end_ahead = next_end < last ? low_word(next_end) : 0;
    uint32_t rows[N_IN_FLIGHT];
    float4 sums[n_quads];

    for (uint32_t u = 0; u < N_IN_FLIGHT; u++)
        rows[u] = u < n ? __ldg(next + u * job.index_step) : 0;
    next += N_IN_FLIGHT * job.index_step;
    for (uint32_t q = 0; q < n_quads; q++)
        sums[q] = quad_zero();
    for (uint32_t i = 0;; i += N_IN_FLIGHT) {
        Vec vecs[N_IN_FLIGHT];

        for (uint32_t u = 0; u < N_IN_FLIGHT; u++)
            if (i + u < n)
                vecs[u] = __ldg(
                    (const Vec *)(column + (uint64_t)rows[u] * row_bytes));
        for (uint32_t u = 0; u < N_IN_FLIGHT; u++)
            if (i + N_IN_FLIGHT + u < n)
                rows[u] = __ldg(next + u * job.index_step);
        next += N_IN_FLIGHT * job.index_step;
        for (uint32_t u = 0; u < N_IN_FLIGHT; u++) {
            while (i + u == bag_end) {
                for (uint32_t q = 0; q < n_quads; q++)
                    quad_store_streaming(out + quad_offset(q, is_half), sums[q],
                                         is_half);
                if (next_end == last)
                    return;
                for (uint32_t q = 0; q < n_quads; q++)
                    sums[q] = quad_zero();
                out += out_stride;
                bag_end = end_ahead - (uint32_t)begin;
                if (++next_end < last)
                    end_ahead = low_word(next_end);
            }
            for (uint32_t q = 0; q < n_quads; q++)
                quad_add(sums[q], quad_of(vecs[u], q));
        }
    }
}

static __global__ void __launch_bounds__(LOOKUP_BLOCK_LANES, 4)
    lookup_forward_kernel(struct forward_job job)
{
    const struct lookup_block block =
        lookup_block_of(&job.classes, job.slices, blockIdx.x);
    const struct lookup_class *own = &job.classes.classes[block.class_idx];
    const struct lookup_slice *slice = &job.slices[block.slice_idx];
    const uint32_t lane = threadIdx.x & (own->group_lanes - 1u);
    const uint64_t bag = block.first_bag + (uint64_t)(threadIdx.x - lane) /
                                               own->group_lanes *
                                               own->bags_a_walk;

    if (bag >= job.batch || lane >= slice->n_vecs)
        return;
    switch (own->vec) {
    case LOOKUP_VEC_FP32:
        walk_bags<float4, 1>(job, own, slice, (uint32_t)bag, lane);
        break;
    case LOOKUP_VEC_FP16:
        walk_bags<uint4, 2>(job, own, slice, (uint32_t)bag, lane);
        break;
    default:
        walk_bags<uint2, 1>(job, own, slice, (uint32_t)bag, lane);
    }
}

int lookup_cuda_forward(struct lookup *lookup, const struct lookup_batch *batch,
                        void *d_out, struct err *err)
{
    struct lookup_cuda *self = lookup_cuda_of(lookup);
    uint64_t n_bags = (uint64_t)lookup->n_tables * lookup->batch;
    struct forward_job job;

    if (!n_bags)
        return 0;
    if (lookup_classes_place(&self->classes, lookup->batch,
                             (double)batch->n_lookups / (double)n_bags,
                             (uint64_t)self->cuda->n_sms * WARPS_A_SM, err))
        return -1;
    job.classes = self->classes;
    job.slices = self->d_slices;
    job.indices = (const uint32_t *)batch->d_indices;
    job.offsets = batch->d_offsets;
    job.out = (char *)d_out;
    job.batch = lookup->batch;
    job.out_dim = lookup->out_dim;
    job.index_step = batch->wide ? 2 : 1;
    job.is_half = lookup->output == PRECISION_FP16;
    return CUDA(launch(lookup_forward_kernel, dim3(self->classes.n_blocks),
                       dim3(LOOKUP_BLOCK_LANES), 0, self->cuda->stream, job),
                err);
}
