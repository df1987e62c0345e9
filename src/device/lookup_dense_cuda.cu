/* SPDX-License-Identifier: MIT */
#include "device/lookup_quads.cuh"

#define BLOCK_THREADS LOOKUP_UPDATE_THREADS

struct dense_update_job {
    struct cuda_table table;
    float *dense;
    uint64_t n_rows;
    float learning_rate;
    uint32_t is_adagrad;
};

/* Updates one row of a data-parallel table per group of lanes. A row stays as
 * it is if all elements of its gradient are +0 or -0. All lanes of a warp run
 * through the kernel together, also those without a row. */
static __global__ void __launch_bounds__(BLOCK_THREADS, 8)
    lookup_dense_kernel(struct dense_update_job job)
{
    const uint32_t lanes = job.table.group_lanes, n_quads = job.table.dim / 4;
    const uint32_t lane = threadIdx.x & (lanes - 1);
    const uint64_t row =
        ((uint64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x) / lanes;
    const bool is_half = job.table.is_half;
    float4 *grad = (float4 *)(job.dense + row * job.table.dim);
    char *weight = job.table.d_weight + row * job.table.dim * (is_half ? 2 : 4);
    float4 squares = quad_zero();
    uint32_t bits = 0;
    float rate = job.learning_rate, state = 0;

    for (uint32_t quad = lane; quad < n_quads + lane; quad += lanes) {
        float4 g = quad_zero();

        if (row < job.n_rows && quad < n_quads)
            g = grad[quad];
        bits |= (__float_as_uint(g.x) | __float_as_uint(g.y) |
                 __float_as_uint(g.z) | __float_as_uint(g.w))
                << 1;
        if (job.is_adagrad)
            squares_add(squares, g, lanes);
    }
    for (uint32_t with = 1; with < lanes; with *= 2)
        bits |= __shfl_xor_sync(ALL_LANES, bits, (int)with);
    if (job.is_adagrad && bits && !lane)
        state = __ldcg(job.table.d_state + row);
    if (job.is_adagrad)
        rate = adagrad_rate(bits ? job.table.d_state + row : NULL, state,
                            squares_mean(squares, lanes, job.table.dim), rate,
                            lanes);
    if (!bits)
        return;
    for (uint32_t quad = lane; quad < n_quads; quad += lanes) {
        void *pos = weight + quad_offset(quad, is_half);

        quad_store(pos, quad_step(quad_load(pos, is_half), rate, grad[quad]),
                   is_half);
        grad[quad] = quad_zero();
    }
}

int lookup_cuda_apply_dense(struct device *device,
                            const struct lookup_table *table, float *d_dense,
                            float learning_rate, enum optimizer optimizer,
                            struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);
    struct dense_update_job job;
    uint64_t n_threads;

    job.table = cuda_table_of(table, 0);
    job.dense = d_dense;
    job.n_rows = table->n_rows;
    job.learning_rate = learning_rate;
    job.is_adagrad = optimizer == OPTIMIZER_ROWWISE_ADAGRAD;
    n_threads = table->n_rows * job.table.group_lanes;
    return CUDA(launch(lookup_dense_kernel,
                       dim3((unsigned)((n_threads + BLOCK_THREADS - 1) /
                                       BLOCK_THREADS)),
                       dim3(BLOCK_THREADS), 0, cuda->stream, job),
                err);
}
