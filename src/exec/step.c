/* SPDX-License-Identifier: MIT */
#include "exec/step.h"

#include "base/interrupt.h"
#include "exec/rank_work.h"
#include "exec/values.h"

#define CHUNK_BYTES ((size_t)16 << 20)
#define BAGS_A_TASK 64

static int open_work(struct rank_work *work, const struct placement *placement,
                     uint32_t rank, enum work_part part, struct err *err)
{
    if (interrupt_requested())
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    return rank_work_open(work, placement, rank, part, STEP_BATCH, 1, err);
}

/* What is queued must be done before its index sets are freed. */
static int finish_work(struct rank_work *work, int rc, struct err *err)
{
    if (!rc)
        rc = device_wait(work->placement->device, err);
    rank_work_close(work);
    return rc;
}

static int forward_rank(const struct placement *placement, uint32_t rank,
                        struct err *err)
{
    struct rank_work work;

    if (open_work(&work, placement, rank, WORK_ALL, err))
        return -1;
    return finish_work(&work, rank_work_forward(&work, 0, err), err);
}

int step_forward(struct placement *placement, const struct exchange_set *set,
                 struct err *err)
{
    for (uint32_t turn = 0; turn < placement->n_turns; turn++) {
        struct rank_range ranks = placement->turns[turn];

        if (placement_load(placement, turn, err))
            return -1;
        for (uint32_t r = ranks.begin; r < ranks.end; r++)
            if (forward_rank(placement, r, err))
                return -1;
    }
    if (exchange_outputs(set, false, err))
        return -1;
    return device_wait(placement->device, err);
}

/* The gradients of a group stand where its outputs stood. The rate is not for
 * replicas, whose gradients are only scattered. */
static int backward_rank(const struct placement *placement, uint32_t rank,
                         enum work_part part, float learning_rate,
                         struct err *err)
{
    struct rank_work work;

    if (open_work(&work, placement, rank, part, err))
        return -1;
    return finish_work(
        &work, rank_work_backward(&work, 0, NULL, learning_rate, err), err);
}

/* Some bags of a block of outputs. */
struct chunk {
    const struct group *group;
    uint64_t bag_begin, n_bags;
    size_t bag_bytes;
    char *gradients; /* [n_bags][out_dim], of the group's precision */
};

static void make_bag(const struct chunk *chunk, uint64_t i, float *row)
{
    const struct group *group = chunk->group;

    for (uint32_t k = 0; k < group->n_pieces; k++) {
        const struct piece *piece = group->pieces[k];

        values_gradient(row + piece->out_begin, piece->table_seed,
                        chunk->bag_begin + i, piece->col_begin, piece->width,
                        group->precision);
    }
    values_store(chunk->gradients + i * chunk->bag_bytes, row, group->out_dim,
                 group->precision);
}

static void make_bags(void *ctx, size_t task, unsigned thread)
{
    const struct chunk *chunk = ctx;
    uint64_t begin = (uint64_t)task * BAGS_A_TASK, end = begin + BAGS_A_TASK;
    float *row = mem_alloc(chunk->group->out_dim, sizeof(*row));

    (void)thread;
    for (uint64_t i = begin; i < end && i < chunk->n_bags; i++)
        make_bag(chunk, i, row);
    mem_free(row);
}

static int fill_block(const struct placement *placement,
                      const struct group *group,
                      const struct output_block *block, struct err *err)
{
    uint64_t n = CHUNK_BYTES / block->bag_bytes + 1;
    struct chunk chunk = {.group = group, .bag_bytes = block->bag_bytes};
    int rc = -1;

    if (n > block->n_bags)
        n = block->n_bags;
    chunk.gradients = mem_alloc((size_t)n, block->bag_bytes);
    for (uint64_t bag = 0; bag < block->n_bags; bag += n) {
        chunk.bag_begin = block->bag_begin + bag;
        chunk.n_bags = block->n_bags - bag < n ? block->n_bags - bag : n;
        pool_run(placement->pool,
                 (size_t)((chunk.n_bags + BAGS_A_TASK - 1) / BAGS_A_TASK),
                 make_bags, &chunk);
        if (device_upload(
                placement->device, (char *)block->d_at + bag * block->bag_bytes,
                chunk.gradients, (size_t)chunk.n_bags * block->bag_bytes, err))
            goto out;
    }
    rc = 0;
out:
    mem_free(chunk.gradients);
    return rc;
}

/* Every receiver that is here writes the loss gradient of its samples over the
 * outputs; made on the host, chunk by chunk. */
static int fill_gradients(const struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;

    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        for (size_t g = 0; g < placement->n_groups; g++) {
            const struct group *group = &placement->groups[g];
            struct output_block block = exchange_block(set, group, r);

            if (block.n_bags && fill_block(placement, group, &block, err))
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
        if (backward_rank(placement, r, WORK_SCATTER, 0, err))
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
        if (backward_rank(placement, r, WORK_SHARDS, learning_rate, err) ||
            rank_work_apply_replicas(placement, r, learning_rate, err))
            return -1;
    return device_wait(placement->device, err);
}
