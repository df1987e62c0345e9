/* SPDX-License-Identifier: MIT */
#include "device/cuda_private.cuh"
#include "device/elementwise_body.h"

/* `kind` is a number, for short names in KERNELS.txt. */
template <int kind>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    elementwise_kernel(struct elementwise job)
{
    for (uint64_t i = grid_first(); i < job.n_rows * job.n_cols;
         i += grid_step())
        elementwise_one(&job, (enum elementwise_kind)kind, i / job.n_cols,
                        i % job.n_cols);
}

#define LAUNCH_KIND(name)                                                      \
    case ELEMENTWISE_##name:                                                   \
        return CUDA(launch_over(cuda, job->n_rows * job->n_cols,               \
                                elementwise_kernel<ELEMENTWISE_##name>, *job), \
                    err);

int elementwise_cuda_run(struct device *device, const struct elementwise *job,
                         struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);

    switch (job->kind) {
        ELEMENTWISE_KINDS(LAUNCH_KIND)
    case N_ELEMENTWISE:
    default:
        return 0;
    }
}
