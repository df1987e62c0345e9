/* SPDX-License-Identifier: MIT */
#include "device/comm.h"

#include "base/mem.h"
#include "device/comm_nccl.h"
#include "device/device_ops.h"
#include "device/world_private.h"

#include <assert.h>

static int copy_start(struct comm *comm, const struct comm_block *blocks,
                      size_t n_blocks, struct err *err)
{
    struct device_copy *copies = mem_alloc(n_blocks, sizeof *copies);
    int rc;

    for (size_t i = 0; i < n_blocks; i++)
        copies[i] = (struct device_copy){blocks[i].d_dst, blocks[i].d_src,
                                         blocks[i].n_bytes};
    rc = comm->device->ops->copy(comm->device, copies, n_blocks, err);
    mem_free(copies);
    return rc;
}

static int host_start(struct comm *comm, const struct comm_block *blocks,
                      size_t n_blocks, struct err *err)
{
    return comm->world->ops->start(comm->world, blocks, n_blocks, err);
}

int comm_open(struct comm **out, struct world *world, struct device *device,
              uint32_t n_ranks, struct err *err)
{
    struct comm shape = {"copy", world, device, n_ranks, copy_start, NULL};

    assert(n_ranks);
    if (world->size > 1) {
        if (n_ranks != world->size)
            return err_usage(err,
                             "%u processes were started for %u ranks: start "
                             "one per rank, or a single one for all ranks",
                             world->size, n_ranks);
        if (device->kind == DEVICE_CUDA)
            return comm_open_nccl(out, &shape, err);
        shape.kind = world->ops->kind;
        shape.start = host_start;
    }
    *out = mem_alloc(1, sizeof **out);
    **out = shape;
    return 0;
}

void comm_close(struct comm *comm)
{
    if (comm && comm->close)
        comm->close(comm);
    mem_free(comm);
}

bool comm_is_here(const struct comm *comm, uint32_t rank)
{
    return comm->world->size == 1 || comm->world->rank == rank;
}

int comm_start(struct comm *comm, const struct comm_block *blocks,
               size_t n_blocks, struct err *err)
{
    struct comm_block *full = mem_alloc(n_blocks, sizeof *full);
    size_t n_full = 0;
    int rc;

    for (size_t i = 0; i < n_blocks; i++)
        if (blocks[i].n_bytes && (comm_is_here(comm, blocks[i].from) ||
                                  comm_is_here(comm, blocks[i].to)))
            full[n_full++] = blocks[i];
    rc = comm->start(comm, full, n_full, err);
    mem_free(full);
    return rc;
}

/* Waits until the blocks between processes have moved. Copies on a device need
 * no waiting here: they are already queued. */
int comm_finish(struct comm *comm, struct err *err)
{
    struct world *world = comm->world;

    return world->ops ? world->ops->finish(world, err) : 0;
}

/* The slice that one rank adds up, of a vector of n floats. */
struct slice {
    uint64_t begin, n;
};

static struct slice slice_of(const struct comm *comm, uint64_t n, uint32_t rank)
{
    uint64_t whole = n / comm->n_ranks, more = n % comm->n_ranks;
    uint64_t before = rank < more ? rank : more;

    return (struct slice){rank * whole + before, whole + (rank < more)};
}

uint64_t comm_sum_scratch(const struct comm *comm, uint64_t n)
{
    return slice_of(comm, n, 0).n * comm->n_ranks;
}

/* Moves slices from every rank to every rank, itself included. If is_spread is
 * false, slice `to` of each rank's data is copied into the scratch of rank
 * `to`; slices are stored in the order of ranks. If is_spread is true, the sum,
 * which is in the place of the first of these slices, is copied back into slice
 * `from` of every rank's data. */
static int move_slices(struct comm *comm, float *const *d_data,
                       float *const *d_scratch, uint64_t n, bool is_spread,
                       struct err *err)
{
    uint32_t n_ranks = comm->n_ranks;
    size_t n_blocks = (size_t)n_ranks * n_ranks;
    struct comm_block *blocks = mem_alloc(n_blocks, sizeof *blocks);
    int rc;

    for (size_t i = 0; i < n_blocks; i++) {
        uint32_t from = (uint32_t)(i / n_ranks), to = (uint32_t)(i % n_ranks);
        struct slice slice = slice_of(comm, n, is_spread ? from : to);
        struct comm_block *block = &blocks[i];

        *block = (struct comm_block){
            .from = from, .to = to, .n_bytes = slice.n * sizeof(float)};
        if (comm_is_here(comm, from))
            block->d_src =
                is_spread ? d_scratch[from] : d_data[from] + slice.begin;
        if (comm_is_here(comm, to))
            block->d_dst = is_spread ? d_data[to] + slice.begin
                                     : d_scratch[to] + from * slice.n;
    }
    rc = comm_start(comm, blocks, n_blocks, err) || comm_finish(comm, err);
    mem_free(blocks);
    return rc ? -1 : 0;
}

/* All-reduce by reduce-scatter and all-gather (Rabenseifner), with one
 * difference: each slice is added up by one rank alone, from the slice of the
 * first rank to that of the last. The order of additions is therefore the same
 * with every body, and so are the bits of the result. */
int comm_sum(struct comm *comm, float *const *d_data, float *const *d_scratch,
             uint64_t n, struct err *err)
{
    if (comm->n_ranks == 1)
        return 0;
    if (move_slices(comm, d_data, d_scratch, n, false, err))
        return -1;
    for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
        const uint64_t n_slice =
            comm_is_here(comm, rank) ? slice_of(comm, n, rank).n : 0;

        for (uint32_t r = 1; n_slice && r < comm->n_ranks; r++)
            if (device_add(comm->device, d_scratch[rank],
                           d_scratch[rank] + r * n_slice, n_slice, err))
                return -1;
    }
    return move_slices(comm, d_data, d_scratch, n, true, err);
}
