/* SPDX-License-Identifier: MIT */
#include "device/alltoall.h"

#include <assert.h>

#include "base/mem.h"
#include "device/device_ops.h"

uint32_t alltoall_begin(const struct alltoall *alltoall, uint32_t rank)
{
    assert(alltoall->n_ranks);
    return (uint32_t)((uint64_t)rank * alltoall->batch / alltoall->n_ranks);
}

static size_t owned_samples(const struct alltoall *alltoall, uint32_t rank)
{
    return alltoall_begin(alltoall, rank + 1) - alltoall_begin(alltoall, rank);
}

size_t alltoall_block(const struct alltoall *alltoall, uint32_t from,
                      uint32_t to)
{
    size_t columns = 0;
    uint32_t i;

    for (i = 0; i < from; i++)
        columns += alltoall->dims[i];
    return owned_samples(alltoall, to) * columns;
}

size_t alltoall_recv_floats(const struct alltoall *alltoall, uint32_t rank)
{
    return alltoall_block(alltoall, alltoall->n_ranks, rank);
}

/* Both sides of a block are contiguous, so an exchange is R * R plain copies.
 * Forward goes from the [batch][dim] buffers to the received blocks. */
static int exchange(struct device *device, const struct alltoall *alltoall,
                    const float *const *d_src, float *const *d_dst, int forward,
                    uint64_t *n_bytes, struct err *err)
{
    uint32_t n_ranks = alltoall->n_ranks, from, to;
    struct device_copy *copies =
        mem_alloc((size_t)n_ranks * n_ranks, sizeof(*copies));
    struct device_copy *copy = copies;
    uint64_t total = 0;
    int rc;

    for (to = 0; to < n_ranks; to++) {
        size_t begin = alltoall_begin(alltoall, to), in_blocks = 0;

        for (from = 0; from < n_ranks; from++, copy++) {
            size_t dim = alltoall->dims[from], in_whole = begin * dim;
            size_t n_floats = owned_samples(alltoall, to) * dim;

            copy->d_src =
                forward ? d_src[from] + in_whole : d_src[to] + in_blocks;
            copy->d_dst =
                forward ? d_dst[to] + in_blocks : d_dst[from] + in_whole;
            copy->n_bytes = n_floats * sizeof(float);
            total += copy->n_bytes;
            in_blocks += n_floats;
        }
    }
    rc = device->ops->copy(device, copies, (size_t)n_ranks * n_ranks, err);
    if (n_bytes)
        *n_bytes = total;
    mem_free(copies);
    return rc;
}

int alltoall_forward(struct device *device, const struct alltoall *alltoall,
                     const float *const *d_send, float *const *d_recv,
                     uint64_t *n_bytes, struct err *err)
{
    return exchange(device, alltoall, d_send, d_recv, 1, n_bytes, err);
}

int alltoall_backward(struct device *device, const struct alltoall *alltoall,
                      const float *const *d_grad_recv, float *const *d_grad,
                      uint64_t *n_bytes, struct err *err)
{
    return exchange(device, alltoall, d_grad_recv, d_grad, 0, n_bytes, err);
}
