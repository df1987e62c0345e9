/* SPDX-License-Identifier: MIT */
#include "device/lookup_runs.cuh"

/* Number of indices that a lane loads at the same time. */
#define N_IN_FLIGHT 4

/* Returns how many of 32 bag ends are <= i, the number of a lookup. Each lane
 * of the warp holds one bag end, in ascending order. */
static __device__ uint32_t count_ended(uint64_t end, uint64_t i)
{
    uint32_t n = 0;

    for (uint32_t step = 16; step; step /= 2) {
        uint64_t other = __shfl_sync(ALL_LANES, end, (int)(n + step - 1));

        if (other <= i)
            n += step;
    }
    return n;
}

static __device__ inline void put_pair(const struct backward_job &job,
                                       uint64_t pos, uint64_t key, uint32_t bag)
{
    if (job.key_step == 2)
        ((uint64_t *)job.keys)[pos] = key;
    else
        job.keys[pos] = (uint32_t)key;
    job.bags[pos] = bag;
}

/* Lists the lookups of all bags. Each warp lists those of 32 bags of one table.
 * To divide the work evenly, whatever the sizes of the bags, each lane takes
 * some lookups and finds the bag of each among the 32 bag ends. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
    lookup_linearise_kernel(struct backward_job job)
{
    const uint32_t lane = threadIdx.x & 31, warps = (job.batch + 31) / 32;
    const uint64_t warp = (uint64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / 32;
    const uint32_t table = (uint32_t)(warp / warps);
    const uint32_t first = (uint32_t)(warp % warps) * 32;
    const uint64_t base = __ldg(job.offsets);
    const uint64_t *ends =
        job.offsets + (uint64_t)table * job.batch + first + 1;
    uint32_t n_bags = job.batch - first;
    uint64_t begin, end, own_end, first_row;

    if (table >= job.n_tables)
        return;
    if (n_bags > 32)
        n_bags = 32;
    begin = __ldg(ends - 1);
    end = __ldg(ends + n_bags - 1);
    own_end = lane < n_bags ? __ldg(ends + lane) : end;
    first_row = job.tables[table].first_row;
    for (uint64_t i = begin + lane; i - lane < end; i += 32 * N_IN_FLIGHT) {
        uint32_t rows[N_IN_FLIGHT];

        for (uint32_t u = 0; u < N_IN_FLIGHT; u++)
            rows[u] = i + u * 32 < end
                          ? __ldg(job.indices + (i + u * 32) * job.index_step)
                          : 0;
        for (uint32_t u = 0; u < N_IN_FLIGHT; u++) {
            uint64_t pos = i + u * 32;
            uint32_t bag = count_ended(own_end, pos);

            if (pos < end)
                put_pair(job, pos - base, first_row + rows[u],
                         table * job.batch + first + bag);
        }
    }
}

static struct backward_job job_of(const struct lookup_cuda *self,
                                  const struct lookup_batch *batch,
                                  const void *d_grad, float learning_rate)
{
    const struct lookup *base = &self->base;
    struct backward_job job;

    job.tables = self->d_tables;
    job.indices = (const uint32_t *)batch->d_indices;
    job.index_step = batch->wide ? 2 : 1;
    job.keys = (uint32_t *)self->pairs.d_keys[self->pairs.current];
    job.bags = self->pairs.d_values[self->pairs.current];
    job.offsets = batch->d_offsets;
    job.grad = (const char *)d_grad;
    job.partials = self->d_partials;
    job.grad_stride = base->out_dim * precision_bytes(base->output);
    job.key_step = self->pairs.key_bytes / 4;
    job.n_tables = base->n_tables;
    job.batch = base->batch;
    job.max_dim = base->max_dim;
    job.max_group_lanes = self->max_group_lanes;
    job.learning_rate = learning_rate;
    job.is_adagrad = base->optimizer == OPTIMIZER_ROWWISE_ADAGRAD;
    return job;
}

/* Runs the given phases of a backward. The kernels of the third phase,
 * LOOKUP_UPDATE, are in lookup_pieces_cuda.cu and lookup_update_cuda.cu. */
int lookup_cuda_backward(struct lookup *lookup, unsigned phases,
                         const struct lookup_batch *batch, const void *d_grad,
                         float learning_rate, struct err *err)
{
    struct lookup_cuda *self = lookup_cuda_of(lookup);
    const uint32_t n = (uint32_t)batch->n_lookups;
    struct backward_job job;

    if (!n || !lookup->n_tables || !lookup->batch)
        return 0;
    if (phases & LOOKUP_LINEARISE) {
        self->pairs.current = 0;
        job = job_of(self, batch, d_grad, learning_rate);
        if (CUDA(launch(lookup_linearise_kernel,
                        blocks_for_warps((uint64_t)job.n_tables *
                                         ((job.batch + 31) / 32)),
                        dim3(BLOCK_THREADS), 0, self->cuda->stream, job),
                 err))
            return -1;
    }
    if (phases & LOOKUP_SORT &&
        cuda_sort_pairs(self->cuda, &self->pairs, n, self->key_bits, err))
        return -1;
    if (!(phases & LOOKUP_UPDATE))
        return 0;
    job = job_of(self, batch, d_grad, learning_rate);
    return lookup_cuda_pieces(self, &job, n, err) ||
                   lookup_cuda_update(self, &job, n, err)
               ? -1
               : 0;
}
