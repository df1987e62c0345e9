/* SPDX-License-Identifier: MIT */
#include "exec/step.h"

#include "base/interrupt.h"
#include "exec/gradients.h"
#include "exec/rank_work.h"
#include "exec/replica.h"

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
    if (exchange_forward(set, err))
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
        &work, rank_work_backward_inplace(&work, 0, learning_rate, err), err);
}

int step_gradients(const struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;

    if (gradients_fill(set, err) || exchange_backward(set, err))
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
            replica_apply(placement, r, learning_rate, err))
            return -1;
    return device_wait(placement->device, err);
}
