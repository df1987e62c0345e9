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
 * of rank `maker`, which looked up, into the blocks of rank `owner`, whose
 * samples they are; backward the other way. */
struct pair {
    uint32_t maker, owner;
    size_t in_whole, in_blocks; /* where it starts, in bytes */
    size_t n_bytes;
};

static struct comm_block block_of(const struct comm *comm,
                                  const struct pair *pair,
                                  const void *const *d_src, void *const *d_dst,
                                  bool is_forward)
{
    struct comm_block block = {.from = is_forward ? pair->maker : pair->owner,
                               .to = is_forward ? pair->owner : pair->maker,
                               .n_bytes = pair->n_bytes};

    if (comm_is_here(comm, block.from))
        block.d_src = (const char *)d_src[block.from] +
                      (is_forward ? pair->in_whole : pair->in_blocks);
    if (comm_is_here(comm, block.to))
        block.d_dst = (char *)d_dst[block.to] +
                      (is_forward ? pair->in_blocks : pair->in_whole);
    return block;
}

int alltoall_exchange(struct comm *comm, const struct alltoall *alltoall,
                      bool is_backward, const void *const *d_src,
                      void *const *d_dst, struct err *err)
{
    uint32_t n_ranks = alltoall->n_ranks;
    struct comm_block *blocks =
        mem_alloc((size_t)n_ranks * n_ranks, sizeof *blocks);
    size_t n_blocks = 0;
    int rc;

    assert(n_ranks == comm_n_ranks(comm));
    for (uint32_t owner = 0; owner < n_ranks; owner++) {
        size_t begin = alltoall_begin(alltoall, owner), in_blocks = 0;

        for (uint32_t maker = 0; maker < n_ranks; maker++) {
            size_t bytes = (size_t)alltoall->dims[maker] *
                           alltoall->element_bytes; /* of a sample */
            struct pair pair = {maker, owner, begin * bytes, in_blocks,
                                owned_samples(alltoall, owner) * bytes};

            in_blocks += pair.n_bytes;
            if (comm_is_here(comm, maker) || comm_is_here(comm, owner))
                blocks[n_blocks++] =
                    block_of(comm, &pair, d_src, d_dst, !is_backward);
        }
    }
    rc = comm_move(comm, blocks, n_blocks, err);
    mem_free(blocks);
    return rc;
}

struct comm_sample alltoall_sample(const struct comm *comm,
                                   const struct alltoall *alltoall)
{
    struct comm_sample sample = {.kind = comm_kind(comm),
                                 .n_ranks = alltoall->n_ranks,
                                 .n_hosts = world_n_hosts(comm_world(comm))};

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
