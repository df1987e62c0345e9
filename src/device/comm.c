/* SPDX-License-Identifier: MIT */
#include "device/comm.h"

#include "base/mem.h"
#include "device/comm_nccl.h"
#include "device/device_ops.h"
#include "device/elementwise.h"
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
    struct comm shape = {.kind = "copy",
                         .world = world,
                         .device = device,
                         .n_ranks = n_ranks,
                         .start = copy_start};

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
    (*out)->sent_bytes = mem_alloc(n_ranks, sizeof *shape.sent_bytes);
    return 0;
}

void comm_close(struct comm *comm)
{
    if (!comm)
        return;
    if (comm->close)
        comm->close(comm);
    mem_free(comm->sent_bytes);
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

    for (size_t i = 0; i < n_blocks; i++) {
        const struct comm_block *block = &blocks[i];
        const bool is_sent = comm_is_here(comm, block->from);

        if (!block->n_bytes || (!is_sent && !comm_is_here(comm, block->to)))
            continue;
        full[n_full++] = *block;
        if (is_sent && block->from != block->to)
            comm->sent_bytes[block->from] += block->n_bytes;
    }
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

static struct slice slice_of(uint32_t n_ranks, uint64_t n, uint32_t rank)
{
    uint64_t whole = n / n_ranks, more = n % n_ranks;
    uint64_t before = rank < more ? rank : more;

    return (struct slice){rank * whole + before, whole + (rank < more)};
}

uint64_t comm_sum_scratch(const struct comm *comm, uint64_t n)
{
    return slice_of(comm->n_ranks, n, 0).n * comm->n_ranks;
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
        struct slice slice = slice_of(n_ranks, n, is_spread ? from : to);
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
            comm_is_here(comm, rank) ? slice_of(comm->n_ranks, n, rank).n : 0;

        for (uint32_t r = 1; n_slice && r < comm->n_ranks; r++)
            if (device_add(comm->device, d_scratch[rank],
                           d_scratch[rank] + r * n_slice, n_slice, err))
                return -1;
    }
    return move_slices(comm, d_data, d_scratch, n, true, err);
}

/* --- means over a part of the ranks --- */

/* Bytes to which the vectors in the scratch memory are aligned. */
#define VECTOR_ALIGNMENT ((size_t)64)

/* Returns the bytes of the scratch memory of one vector. */
static size_t vector_scratch(const struct comm_part *part,
                             const struct comm_vector *vector)
{
    const uint64_t n = slice_of(part->n_ranks, vector->n, 0).n * part->n_ranks;
    const size_t bytes = (size_t)n * precision_bytes(vector->precision);

    return (bytes + VECTOR_ALIGNMENT - 1) / VECTOR_ALIGNMENT * VECTOR_ALIGNMENT;
}

size_t comm_mean_scratch(const struct comm_part *part,
                         const struct comm_vector *vectors, size_t n_vectors)
{
    size_t bytes = 0;

    for (size_t v = 0; v < n_vectors; v++)
        bytes += vector_scratch(part, &vectors[v]);
    return bytes;
}

static uint32_t rank_of_part(const struct comm_part *part, uint32_t i)
{
    return part->first + i * part->step;
}

/* Starts to move the slices of a vector between all pairs of ranks of a part,
 * as move_slices does. `offset` is the place of the vector in the scratch
 * memory.
 */
static int start_vector(struct comm *comm, const struct comm_part *part,
                        const struct comm_vector *vector,
                        void *const *d_scratch, size_t offset, bool is_spread,
                        struct err *err)
{
    const size_t size = precision_bytes(vector->precision);
    const uint32_t n_ranks = part->n_ranks;
    struct comm_block *blocks =
        mem_alloc((size_t)n_ranks * n_ranks, sizeof *blocks);
    int rc;

    for (size_t i = 0; i < (size_t)n_ranks * n_ranks; i++) {
        const uint32_t from = (uint32_t)(i / n_ranks);
        const uint32_t to = (uint32_t)(i % n_ranks);
        const struct slice slice =
            slice_of(n_ranks, vector->n, is_spread ? from : to);
        struct comm_block *block = &blocks[i];

        *block = (struct comm_block){.from = rank_of_part(part, from),
                                     .to = rank_of_part(part, to),
                                     .n_bytes = slice.n * size};
        if (comm_is_here(comm, block->from))
            block->d_src =
                is_spread ? (char *)d_scratch[from] + offset
                          : (char *)vector->d_data[from] + slice.begin * size;
        if (comm_is_here(comm, block->to))
            block->d_dst =
                is_spread
                    ? (char *)vector->d_data[to] + slice.begin * size
                    : (char *)d_scratch[to] + offset + from * slice.n * size;
    }
    rc = comm_start(comm, blocks, (size_t)n_ranks * n_ranks, err);
    mem_free(blocks);
    return rc;
}

static int move_vectors(struct comm *comm, const struct comm_part *part,
                        const struct comm_vector *vectors, size_t n_vectors,
                        void *const *d_scratch, bool is_spread, struct err *err)
{
    size_t offset = 0;

    for (size_t v = 0; v < n_vectors; v++) {
        if (start_vector(comm, part, &vectors[v], d_scratch, offset, is_spread,
                         err))
            return -1;
        offset += vector_scratch(part, &vectors[v]);
    }
    return comm_finish(comm, err);
}

/* Replaces the first slice of each vector in a rank's scratch memory by the
 * mean of its slices. */
static int average_slices(struct comm *comm, const struct comm_part *part,
                          const struct comm_vector *vectors, size_t n_vectors,
                          uint32_t i, char *d_scratch, struct err *err)
{
    for (size_t v = 0; v < n_vectors; v++) {
        const bool is_half = vectors[v].precision == PRECISION_FP16;
        const uint64_t n = slice_of(part->n_ranks, vectors[v].n, i).n;
        const struct elementwise job = {
            .kind = is_half ? ELEMENTWISE_AVERAGE_HALF : ELEMENTWISE_AVERAGE,
            .n_rows = 1,
            .n_cols = n,
            .out = {d_scratch, n},
            .a = {d_scratch, n},
            .size = part->n_ranks};

        if (n && device_elementwise(comm->device, &job, err))
            return -1;
        d_scratch += vector_scratch(part, &vectors[v]);
    }
    return 0;
}

int comm_mean(struct comm *comm, const struct comm_part *part,
              const struct comm_vector *vectors, size_t n_vectors,
              void *const *d_scratch, struct err *err)
{
    if (part->n_ranks == 1)
        return 0;
    if (move_vectors(comm, part, vectors, n_vectors, d_scratch, false, err))
        return -1;
    for (uint32_t i = 0; i < part->n_ranks; i++)
        if (comm_is_here(comm, rank_of_part(part, i)) &&
            average_slices(comm, part, vectors, n_vectors, i, d_scratch[i],
                           err))
            return -1;
    return move_vectors(comm, part, vectors, n_vectors, d_scratch, true, err);
}
