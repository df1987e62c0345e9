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

/* Returns the number of samples of a rank that lie before part `part` of its
 * samples. */
static size_t part_begin(const struct alltoall *alltoall, uint32_t rank,
                         uint32_t part)
{
    uint32_t n = alltoall->n_parts ? alltoall->n_parts : 1;

    return owned_samples(alltoall, rank) * part / n;
}

/* The "maker" of a block is the rank that looked up its tables for the whole
 * batch. The "owner" is the rank that has the samples of the block. A block
 * goes from the maker to the owner in a forward exchange, and from the owner to
 * the maker in a backward exchange. It is contiguous at both ends. */
int alltoall_start(struct comm *comm, const struct alltoall *alltoall,
                   bool is_backward, const void *const *d_src,
                   void *const *d_dst, struct err *err)
{
    uint32_t n_ranks = alltoall->n_ranks, part = alltoall->part;
    const uint32_t first = alltoall->first_rank;
    struct comm_block *blocks =
        mem_alloc((size_t)n_ranks * n_ranks, sizeof *blocks);
    struct comm_block *block = blocks;
    size_t before = 0; /* samples before the block in its maker's buffer */
    int rc;

    assert(alltoall->first_rank + n_ranks <= comm->n_ranks);
    for (uint32_t owner = 0; owner < n_ranks; owner++)
        before += part_begin(alltoall, owner, part);
    for (uint32_t owner = 0; owner < n_ranks; owner++) {
        size_t begin = part_begin(alltoall, owner, part);
        size_t n = part_begin(alltoall, owner, part + 1) - begin;
        size_t in_blocks = 0;

        for (uint32_t maker = 0; maker < n_ranks; maker++, block++) {
            size_t bytes = (size_t)alltoall->dims[maker] *
                           alltoall->element_bytes; /* bytes per sample */
            size_t at_maker = before * bytes;
            size_t at_owner = in_blocks + begin * bytes;

            *block = (struct comm_block){
                .from = first + (is_backward ? owner : maker),
                .to = first + (is_backward ? maker : owner),
                .n_bytes = n * bytes};
            if (comm_is_here(comm, block->from))
                block->d_src = (const char *)d_src[block->from - first] +
                               (is_backward ? at_owner : at_maker);
            if (comm_is_here(comm, block->to))
                block->d_dst = (char *)d_dst[block->to - first] +
                               (is_backward ? at_maker : at_owner);
            in_blocks += owned_samples(alltoall, owner) * bytes;
        }
        before += n;
    }
    rc = comm_start(comm, blocks, (size_t)n_ranks * n_ranks, err);
    mem_free(blocks);
    return rc;
}

/* Returns the bytes that the busiest group of hosts_per_domain hosts sends to
 * other groups, or receives from them. Returns 0 if all ranks are in one
 * process. */
static uint64_t busiest_host(const struct world *world,
                             const struct alltoall *alltoall,
                             uint32_t hosts_per_domain)
{
    uint64_t all_dims = 0, busiest = 0;

    for (uint32_t r = 0; r < alltoall->n_ranks; r++)
        all_dims += alltoall->dims[r];
    for (uint32_t host = 0; world->size > 1 && host < world->n_hosts;
         host += hosts_per_domain) {
        uint64_t dims = 0, samples = 0;

        for (uint32_t r = 0; r < alltoall->n_ranks; r++)
            if (world->host_of[alltoall->first_rank + r] / hosts_per_domain ==
                host / hosts_per_domain) {
                dims += alltoall->dims[r];
                samples += owned_samples(alltoall, r);
            }
        busiest = max_u64(busiest, max_u64(dims * (alltoall->batch - samples),
                                           (all_dims - dims) * samples));
    }
    return busiest * alltoall->element_bytes;
}

struct comm_sample alltoall_sample(const struct comm *comm,
                                   const struct alltoall *alltoall,
                                   uint32_t hosts_per_domain)
{
    const struct world *world = comm->world;
    struct comm_sample sample = {
        .kind = comm->kind,
        .n_ranks = alltoall->n_ranks,
        .n_hosts = (world->n_hosts - 1) / hosts_per_domain + 1,
        .host_bytes = busiest_host(world, alltoall, hosts_per_domain)};

    for (uint32_t r = 0; r < alltoall->n_ranks; r++) {
        uint64_t sent = (uint64_t)alltoall->batch * alltoall->dims[r];
        uint64_t received = alltoall_recv_elements(alltoall, r);

        sample.total_bytes += sent * alltoall->element_bytes;
        sample.max_bytes =
            max_u64(sample.max_bytes,
                    max_u64(sent, received) * alltoall->element_bytes);
    }
    return sample;
}
