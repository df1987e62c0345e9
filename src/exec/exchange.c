/* SPDX-License-Identifier: MIT */
#include "exec/exchange.h"

#include "exec/values.h"

static const struct group *find_group(const struct placement *placement,
                                      uint32_t rank, uint32_t n_outputs)
{
    for (size_t g = placement->rank_groups[rank];
         g < placement->rank_groups[rank + 1]; g++)
        if (!placement->groups[g].replica &&
            placement->groups[g].n_outputs == n_outputs)
            return &placement->groups[g];
    return NULL;
}

static int allocate_received(struct exchange *exchange, struct device *device,
                             struct err *err)
{
    const struct alltoall *alltoall = &exchange->alltoall;
    size_t n = 0;
    float *d_next;

    for (uint32_t r = 0; r < alltoall->n_ranks; r++)
        n += alltoall_recv_floats(alltoall, r);
    if (device_alloc(device, &exchange->d_block, n * sizeof(float), err))
        return -1;
    d_next = exchange->d_block;
    for (uint32_t r = 0; r < alltoall->n_ranks; r++) {
        exchange->d_recv[r] = d_next;
        d_next += alltoall_recv_floats(alltoall, r);
    }
    return 0;
}

static int open_one(struct exchange *exchange,
                    const struct placement *placement, uint32_t n_outputs,
                    struct arena *arena, struct err *err)
{
    uint32_t n = placement->n_ranks;

    exchange->n_outputs = n_outputs;
    exchange->dims = ARENA_NEW(arena, uint32_t, n);
    exchange->d_send = ARENA_NEW(arena, float *, n);
    exchange->d_recv = ARENA_NEW(arena, float *, n);
    for (uint32_t r = 0; r < n; r++) {
        const struct group *group = find_group(placement, r, n_outputs);

        if (!group)
            continue;
        exchange->dims[r] = n_outputs * group->out_dim;
        exchange->d_send[r] = group->d_out;
    }
    exchange->alltoall = (struct alltoall){
        .n_ranks = n,
        .batch = placement->batch,
        .dims = exchange->dims,
    };
    return allocate_received(exchange, placement->device, err);
}

static const struct exchange *find_exchange(const struct exchange_set *set,
                                            uint32_t n_outputs)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->exchanges[i].n_outputs == n_outputs)
            return &set->exchanges[i];
    return NULL;
}

int exchange_open(struct exchange_set *set, const struct placement *placement,
                  struct arena *arena, struct err *err)
{
    *set = (struct exchange_set){
        .placement = placement,
        .exchanges = ARENA_NEW(arena, struct exchange, placement->n_groups),
    };
    for (size_t g = 0; g < placement->n_groups; g++) {
        const struct group *group = &placement->groups[g];

        if (group->replica || find_exchange(set, group->n_outputs))
            continue;
        if (open_one(&set->exchanges[set->n], placement, group->n_outputs,
                     arena, err)) {
            exchange_close(set);
            return -1;
        }
        set->n++;
    }
    return 0;
}

void exchange_close(struct exchange_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        device_free(set->placement->device, set->exchanges[i].d_block);
    set->n = 0;
}

int exchange_forward(const struct exchange_set *set, struct err *err)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct exchange *exchange = &set->exchanges[i];

        if (alltoall_forward(set->placement->device, &exchange->alltoall,
                             (const float *const *)exchange->d_send,
                             exchange->d_recv, NULL, err))
            return -1;
    }
    return 0;
}

int exchange_backward(const struct exchange_set *set, struct err *err)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct exchange *exchange = &set->exchanges[i];

        if (alltoall_backward(set->placement->device, &exchange->alltoall,
                              (const float *const *)exchange->d_recv,
                              exchange->d_send, NULL, err))
            return -1;
    }
    return 0;
}

struct output_view exchange_view(const struct exchange_set *set,
                                 const struct piece *piece, uint32_t receiver)
{
    const struct exchange *exchange;
    const struct group *group;
    float *d_base;

    if (piece->group == NO_GROUP)
        return (struct output_view){0};
    group = &set->placement->groups[piece->group];
    if (piece->replica && piece->rank != receiver)
        return (struct output_view){0};
    if (piece->replica) {
        d_base = group->d_out;
    } else {
        exchange = find_exchange(set, group->n_outputs);
        d_base = exchange->d_recv[receiver] +
                 alltoall_block(&exchange->alltoall, piece->rank, receiver);
    }
    return (struct output_view){
        .d_at = d_base + piece->out_begin,
        .stride = group->out_dim,
    };
}

/* Task: one piece at one receiver. */
static void fill_gradient(void *ctx, size_t task, unsigned thread)
{
    const struct exchange_set *set = ctx;
    const struct placement *placement = set->placement;
    const struct piece *piece = &placement->pieces[task / placement->n_ranks];
    uint32_t receiver = (uint32_t)(task % placement->n_ranks);
    struct output_view view = exchange_view(set, piece, receiver);
    uint32_t n_outputs = (uint32_t)piece->table->num_outputs;
    uint64_t begin = placement_sample(placement, receiver);
    uint64_t end = placement_sample(placement, receiver + 1);

    (void)thread;
    if (!view.d_at)
        return;
    begin *= n_outputs;
    end *= n_outputs;
    for (uint64_t bag = begin; bag < end; bag++)
        values_gradient(view.d_at + (bag - begin) * view.stride,
                        piece->table_seed, bag, piece->col_begin, piece->width);
}

void exchange_fill_gradients(const struct exchange_set *set)
{
    struct exchange_set copy = *set; /* pool_run's context is not const */

    pool_run(set->placement->pool,
             set->placement->n_pieces * set->placement->n_ranks, fill_gradient,
             &copy);
}
