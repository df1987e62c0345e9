/* SPDX-License-Identifier: MIT */
#include "exec/exchange.h"

/* Number of floats that one all-reduce sums at a time. */
#define ALLREDUCE_FLOATS (ALLREDUCE_BYTES / sizeof(float))

static bool carries(const struct exchange *exchange, const struct group *group)
{
    return !group->replica && !group->vectors &&
           group->owners.begin == exchange->ranks.begin &&
           group->n_outputs == exchange->like->n_outputs &&
           group->precision == exchange->like->precision;
}

/* Divides d_block into receive buffers for the ranks of this process. Returns
 * the total size of the buffers in bytes. */
static size_t lay_out(struct exchange *exchange,
                      const struct placement *placement)
{
    const struct alltoall *alltoall = &exchange->alltoall;
    struct device_parts parts = {exchange->d_block, 0};

    for (uint32_t r = 0; r < alltoall->n_ranks; r++)
        if (comm_is_here(placement->comm, exchange->ranks.begin + r))
            exchange->d_recv[r] =
                device_part(&parts, alltoall_recv_elements(alltoall, r) *
                                        alltoall->element_bytes);
    return parts.n_bytes;
}

static int open_one(struct exchange *exchange,
                    const struct placement *placement, const struct group *like,
                    struct arena *arena, struct err *err)
{
    const struct rank_range ranks = like->owners;
    uint32_t n = ranks.end - ranks.begin, *dims = ARENA_NEW(arena, uint32_t, n);

    exchange->like = like;
    exchange->ranks = ranks;
    exchange->d_send = ARENA_NEW(arena, void *, n);
    exchange->d_recv = ARENA_NEW(arena, void *, n);
    for (size_t g = 0; g < placement->n_groups; g++) {
        const struct group *group = &placement->groups[g];

        if (!carries(exchange, group))
            continue;
        dims[group->rank - ranks.begin] = group->n_outputs * group->out_dim;
        exchange->d_send[group->rank - ranks.begin] = group->d_out;
    }
    exchange->alltoall = (struct alltoall){
        .n_ranks = n,
        .first_rank = ranks.begin,
        .batch = placement_copy_samples(placement),
        .dims = dims,
        .element_bytes = (uint32_t)precision_bytes(like->precision),
    };
    if (device_alloc(placement->device, &exchange->d_block,
                     lay_out(exchange, placement), err))
        return -1;
    lay_out(exchange, placement);
    return 0;
}

static const struct exchange *find_exchange(const struct exchange_set *set,
                                            const struct group *group)
{
    for (size_t i = 0; i < set->n; i++)
        if (carries(&set->exchanges[i], group))
            return &set->exchanges[i];
    return NULL;
}

/* Allocates the scratch memory of the all-reduce. Its size is that of the
 * part of the gradients that is summed at a time. */
static int open_scratch(struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;
    const uint64_t n = min_u64(placement->n_dense, ALLREDUCE_FLOATS);

    for (uint32_t r = placement->here.begin; n && r < placement->here.end;
         r++) {
        void *d_ptr;

        if (device_alloc(placement->device, &d_ptr,
                         (size_t)comm_sum_scratch(placement->comm, n) *
                             sizeof(float),
                         err))
            return -1;
        set->d_scratch[r] = d_ptr;
    }
    return 0;
}

int exchange_open(struct exchange_set *set, const struct placement *placement,
                  struct arena *arena, struct err *err)
{
    *set = (struct exchange_set){
        .placement = placement,
        .exchanges = ARENA_NEW(arena, struct exchange, placement->n_groups),
        .d_scratch = ARENA_NEW(arena, float *, placement->n_ranks),
    };
    for (size_t g = 0; g < placement->n_groups; g++) {
        const struct group *group = &placement->groups[g];

        if (!group->replica && !group->vectors && !find_exchange(set, group) &&
            open_one(&set->exchanges[set->n++], placement, group, arena, err))
            return -1;
    }
    if (sequence_exchange_open(&set->sequences, placement, arena, err))
        return -1;
    return open_scratch(set, err);
}

void exchange_close(struct exchange_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        device_free(set->placement->device, set->exchanges[i].d_block);
    sequence_exchange_close(&set->sequences);
    for (uint32_t r = 0; set->d_scratch && r < set->placement->n_ranks; r++)
        device_free(set->placement->device, set->d_scratch[r]);
    *set = (struct exchange_set){0};
}

int exchange_start(const struct exchange_set *set, bool is_backward,
                   uint32_t part, uint32_t n_parts, struct err *err)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct exchange *exchange = &set->exchanges[i];
        void **d_from = is_backward ? exchange->d_recv : exchange->d_send;
        void **d_to = is_backward ? exchange->d_send : exchange->d_recv;
        struct alltoall alltoall = exchange->alltoall;

        alltoall.part = part;
        alltoall.n_parts = n_parts;
        if (alltoall_start(set->placement->comm, &alltoall, is_backward,
                           (const void *const *)d_from, d_to, err))
            return -1;
    }
    return sequence_exchange_start(&set->sequences, is_backward, part, n_parts,
                                   err);
}

int exchange_outputs(const struct exchange_set *set, bool is_backward,
                     struct err *err)
{
    if (exchange_start(set, is_backward, 0, 1, err))
        return -1;
    return comm_finish(set->placement->comm, err);
}

int exchange_allreduce(const struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;
    float **d_parts = mem_alloc(placement->n_ranks, sizeof(*d_parts));
    int rc = 0;

    for (uint64_t pos = 0; !rc && pos < placement->n_dense;
         pos += ALLREDUCE_FLOATS) {
        for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
            d_parts[r] = placement->d_dense[r] + pos;
        rc = comm_sum(placement->comm, d_parts, set->d_scratch,
                      min_u64(placement->n_dense - pos, ALLREDUCE_FLOATS), err);
    }
    mem_free(d_parts);
    return rc;
}

struct output_block exchange_block(const struct exchange_set *set,
                                   const struct group *group, uint32_t receiver)
{
    const struct placement *placement = set->placement;
    struct output_block block = {
        .bag_begin =
            (uint64_t)placement_sample(placement, receiver) * group->n_outputs,
        .n_bags = placement_outputs(placement, group, receiver),
    };
    const struct exchange *exchange = find_exchange(set, group);

    if (!group_serves(group, receiver))
        return (struct output_block){0};
    if (group->replica)
        block.d_at = group->d_out;
    else if (group->vectors)
        block.d_at = sequence_exchange_block(&set->sequences, group, receiver);
    else
        block.d_at =
            (char *)exchange->d_recv[receiver - exchange->ranks.begin] +
            alltoall_block(&exchange->alltoall,
                           group->rank - exchange->ranks.begin,
                           receiver - exchange->ranks.begin) *
                exchange->alltoall.element_bytes;
    return block;
}
