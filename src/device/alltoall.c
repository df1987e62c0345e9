/* SPDX-License-Identifier: MIT */
#include "device/alltoall.h"

#include "base/mem.h"

#include <assert.h>

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

size_t alltoall_recv_elements(const struct alltoall *alltoall, uint32_t rank)
{
    return alltoall_block(alltoall, alltoall->n_ranks, rank);
}

/* Both sides of a block are contiguous. Forward it goes from the whole batch
 * of the rank that looked up, its maker, into the blocks of the rank whose
 * samples they are, its owner; backward the other way. */
int alltoall_exchange(struct comm *comm, const struct alltoall *alltoall,
                      bool is_backward, const void *const *d_src,
                      void *const *d_dst, struct err *err)
{
    size_t n_ranks = alltoall->n_ranks, n_blocks = n_ranks * n_ranks;
    struct comm_block *blocks = mem_alloc(n_blocks, sizeof *blocks);
    size_t in_blocks = 0;
    int rc;

    assert(n_ranks == comm->n_ranks);
    for (size_t i = 0; i < n_blocks; i++) {
        uint32_t owner = (uint32_t)(i / n_ranks),
                 maker = (uint32_t)(i % n_ranks);
        size_t bytes = (size_t)alltoall->dims[maker] *
                       alltoall->element_bytes; /* of a sample */
        size_t in_whole = alltoall_begin(alltoall, owner) * bytes;
        struct comm_block *block = &blocks[i];

        *block = (struct comm_block){.from = is_backward ? owner : maker,
                                     .to = is_backward ? maker : owner,
                                     .n_bytes = owned_samples(alltoall, owner) *
                                                bytes};
        in_blocks = maker ? in_blocks : 0;
        if (comm_is_here(comm, block->from))
            block->d_src = (const char *)d_src[block->from] +
                           (is_backward ? in_blocks : in_whole);
        if (comm_is_here(comm, block->to))
            block->d_dst =
                (char *)d_dst[block->to] + (is_backward ? in_whole : in_blocks);
        in_blocks += block->n_bytes;
    }
    rc = comm_move(comm, blocks, n_blocks, err);
    mem_free(blocks);
    return rc;
}

struct comm_sample alltoall_sample(const struct comm *comm,
                                   const struct alltoall *alltoall)
{
    struct comm_sample sample = {.kind = comm->kind,
                                 .n_ranks = alltoall->n_ranks,
                                 .n_hosts = comm->world->n_hosts};

    for (uint32_t r = 0; r < alltoall->n_ranks; r++) {
        uint64_t sent = (uint64_t)alltoall->batch * alltoall->dims[r];
        uint64_t received = alltoall_recv_elements(alltoall, r);
        uint64_t most = sent > received ? sent : received;

        sample.total_bytes += sent * alltoall->element_bytes;
        if (sample.max_bytes < most * alltoall->element_bytes)
            sample.max_bytes = most * alltoall->element_bytes;
    }
    return sample;
}
