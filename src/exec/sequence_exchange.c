/* SPDX-License-Identifier: MIT */
#include "exec/sequence_exchange.h"

static bool is_carried(const struct group *group)
{
    return group->vectors && !group->replica;
}

/* Returns the byte offset of a maker's block in the receive buffer of an owner.
 * If maker is n_ranks, returns the bytes of the buffer. */
static size_t block_at(const struct placement *placement,
                       const struct sequence_exchange *exchange, uint32_t maker,
                       uint32_t owner)
{
    size_t bytes = 0;

    for (uint32_t r = 0; r < maker; r++)
        if (exchange->groups[r])
            bytes += (size_t)placement_outputs(placement, exchange->groups[r],
                                               owner) *
                     group_bag_bytes(exchange->groups[r]);
    return bytes;
}

/* Divides d_block into receive buffers for the ranks of this process. Returns
 * the total size of the buffers in bytes. */
static size_t lay_out(struct sequence_exchange *exchange,
                      const struct placement *placement)
{
    struct device_parts parts = {exchange->d_block, 0};

    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        exchange->d_recv[r] = device_part(
            &parts, block_at(placement, exchange, placement->n_ranks, r));
    return parts.n_bytes;
}

/* Lists the groups of each exchange. Returns the number of exchanges. */
static size_t list_groups(struct sequence_set *set, struct arena *arena)
{
    const struct placement *placement = set->placement;
    size_t n = 0;

    set->exchanges =
        ARENA_NEW(arena, struct sequence_exchange, placement->n_groups);
    for (uint32_t r = 0; r < placement->n_ranks; r++) {
        size_t k = 0;

        for (const struct group *group = placement->rank_groups[r];
             group < placement->rank_groups[r + 1]; group++) {
            struct sequence_exchange *exchange = &set->exchanges[k];

            if (!is_carried(group))
                continue;
            if (!exchange->groups)
                exchange->groups =
                    ARENA_NEW(arena, const struct group *, placement->n_ranks);
            exchange->groups[r] = group;
            k++;
        }
        n = k > n ? k : n;
    }
    return n;
}

int sequence_exchange_open(struct sequence_set *set,
                           const struct placement *placement,
                           struct arena *arena, struct err *err)
{
    *set = (struct sequence_set){.placement = placement};
    set->n = list_groups(set, arena);
    for (size_t i = 0; i < set->n; i++) {
        struct sequence_exchange *exchange = &set->exchanges[i];

        exchange->d_recv = ARENA_NEW(arena, char *, placement->n_ranks);
        if (device_alloc(placement->device, &exchange->d_block,
                         lay_out(exchange, placement), err))
            return -1;
        lay_out(exchange, placement);
    }
    return 0;
}

void sequence_exchange_close(struct sequence_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        device_free(set->placement->device, set->exchanges[i].d_block);
    *set = (struct sequence_set){0};
}

/* Lists the blocks that go between a maker, which looks vectors up, and the
 * owners of the samples, for one part of the samples of each owner. The maker
 * has the vectors of the owners one after the other. */
static void list_blocks(struct comm_block *blocks,
                        const struct placement *placement,
                        const struct sequence_exchange *exchange,
                        uint32_t maker, bool is_backward, uint32_t part,
                        uint32_t n_parts)
{
    const struct group *group = exchange->groups[maker];
    const struct group own = placement_part(placement, group, part, n_parts);
    const size_t bytes = group_bag_bytes(group);
    char *d_made = own.d_out;

    for (uint32_t owner = 0; owner < placement->n_ranks; owner++) {
        const uint32_t first = placement_sample(placement, owner);
        const uint32_t begin =
            placement_part_sample(placement, owner, part, n_parts);
        const uint32_t end =
            placement_part_sample(placement, owner, part + 1, n_parts);
        const size_t size =
            (size_t)(group->vectors[end] - group->vectors[begin]) * bytes;
        char *d_owned = exchange->d_recv[owner];

        if (d_owned)
            d_owned +=
                block_at(placement, exchange, maker, owner) +
                (size_t)(group->vectors[begin] - group->vectors[first]) * bytes;
        blocks[owner] = (struct comm_block){
            .from = is_backward ? owner : maker,
            .to = is_backward ? maker : owner,
            .d_src = is_backward ? d_owned : d_made,
            .d_dst = is_backward ? d_made : d_owned,
            .n_bytes = size,
        };
        if (d_made)
            d_made += size;
    }
}

int sequence_exchange_start(const struct sequence_set *set, bool is_backward,
                            uint32_t part, uint32_t n_parts, struct err *err)
{
    const struct placement *placement = set->placement;
    const size_t n_ranks = placement->n_ranks;
    struct comm_block *blocks = mem_alloc(n_ranks * n_ranks, sizeof(*blocks));
    int rc = 0;

    for (size_t i = 0; !rc && i < set->n; i++) {
        size_t n = 0;

        for (uint32_t maker = 0; maker < n_ranks; maker++)
            if (set->exchanges[i].groups[maker]) {
                list_blocks(blocks + n, placement, &set->exchanges[i], maker,
                            is_backward, part, n_parts);
                n += n_ranks;
            }
        rc = comm_start(placement->comm, blocks, n, err);
    }
    mem_free(blocks);
    return rc;
}

void *sequence_exchange_block(const struct sequence_set *set,
                              const struct group *group, uint32_t receiver)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->exchanges[i].groups[group->rank] == group)
            return set->exchanges[i].d_recv[receiver] +
                   block_at(set->placement, &set->exchanges[i], group->rank,
                            receiver);
    return NULL;
}
