/* SPDX-License-Identifier: MIT */
#include "exec/step.h"

#include "base/interrupt.h"
#include "exec/rank_work.h"
#include "exec/values.h"

#define BAGS_A_TASK 64

/* The work of a rank: forward, or backward of gradients that stand where the
 * outputs stood. The rate is not for replicas, whose gradients are only
 * scattered. */
static int run_rank(const struct placement *placement, uint32_t rank,
                    bool is_backward, enum work_part part, float learning_rate,
                    struct err *err)
{
    struct rank_work work;
    int rc;

    if (interrupt_requested())
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    if (rank_work_open(&work, placement, rank, part, STEP_BATCH, 1, err))
        return -1;
    rc = is_backward ? rank_work_backward(&work, 0, NULL, learning_rate, err)
                     : rank_work_forward(&work, 0, err);
    /* What is queued must be done before its index sets are freed. */
    if (!rc)
        rc = device_wait(placement->device, err);
    rank_work_close(&work);
    return rc;
}

int step_forward(struct placement *placement, const struct exchange_set *set,
                 struct err *err)
{
    for (uint32_t turn = 0; turn < placement->n_turns; turn++) {
        struct rank_range ranks = placement->turns[turn];

        if (placement_load(placement, turn, err))
            return -1;
        for (uint32_t r = ranks.begin; r < ranks.end; r++)
            if (run_rank(placement, r, false, WORK_ALL, 0, err))
                return -1;
    }
    if (exchange_outputs(set, false, err))
        return -1;
    return device_wait(placement->device, err);
}

/* Gradients of some bags of a block of outputs. */
struct bags {
    const struct group *group;
    struct output_block block;
};

static void make_bags(const void *ctx, uint64_t begin, uint64_t end, void *out)
{
    const struct bags *bags = ctx;
    const struct group *group = bags->group;
    float *row = mem_alloc(group->out_dim, sizeof(*row));

    for (uint64_t i = begin; i < end; i++) {
        for (uint32_t k = 0; k < group->n_pieces; k++) {
            const struct piece *piece = group->pieces[k];

            values_gradient(row + piece->out_begin, piece->table_seed,
                            bags->block.bag_begin + i, piece->col_begin,
                            piece->width, group->precision);
        }
        values_store((char *)out + (i - begin) * bags->block.bag_bytes, row,
                     group->out_dim, group->precision);
    }
    mem_free(row);
}

/* Every receiver that is here writes the loss gradient of its samples over the
 * outputs; made on the host, chunk by chunk. */
static int fill_gradients(const struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;

    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        for (size_t g = 0; g < placement->n_groups; g++) {
            const struct group *group = &placement->groups[g];
            struct bags bags = {group, exchange_block(set, group, r)};
            struct made made = {make_bags, &bags, bags.block.bag_bytes,
                                BAGS_A_TASK};

            if (bags.block.n_bags &&
                placement_upload(placement, bags.block.d_at, bags.block.n_bags,
                                 &made, err))
                return -1;
        }
    return 0;
}

int step_gradients(const struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;

    if (fill_gradients(set, err) || exchange_outputs(set, true, err))
        return -1;
    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        if (run_rank(placement, r, true, WORK_SCATTER, 0, err))
            return -1;
    if (exchange_allreduce(set, err))
        return -1;
    return device_wait(placement->device, err);
}

int step_update(struct placement *placement, uint32_t turn, float learning_rate,
                struct err *err)
{
    struct rank_range ranks = placement->turns[turn];

    if (placement_load(placement, turn, err))
        return -1;
    for (uint32_t r = ranks.begin; r < ranks.end; r++)
        if (run_rank(placement, r, true, WORK_SHARDS, learning_rate, err) ||
            rank_work_apply_replicas(placement, r, learning_rate, err))
            return -1;
    return device_wait(placement->device, err);
}
