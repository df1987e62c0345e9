/* SPDX-License-Identifier: MIT */
#include "exec/step.h"

#include "base/clock.h"
#include "exec/rank_work.h"

static int forward_rank(const struct placement *placement, uint32_t rank,
                        struct err *err)
{
    struct rank_work work;
    int rc;

    if (interrupt_requested())
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    if (rank_work_open(&work, placement, rank, STEP_BATCH, 1, err))
        return -1;
    rc = rank_work_forward(&work, 0, err);
    rank_work_close(&work);
    return rc;
}

int step_forward(const struct exchange_set *set, struct err *err)
{
    for (uint32_t r = 0; r < set->placement->n_ranks; r++)
        if (forward_rank(set->placement, r, err))
            return -1;
    return exchange_forward(set, err);
}

/* The gradients of a group stand where its outputs stood. */
static int backward_rank(const struct placement *placement, uint32_t rank,
                         float learning_rate, struct err *err)
{
    struct rank_work work;
    const float **d_grads;
    int rc;

    if (interrupt_requested())
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    if (rank_work_open(&work, placement, rank, STEP_BATCH, 1, err))
        return -1;
    d_grads = mem_alloc(work.n_groups, sizeof(*d_grads));
    for (size_t g = 0; g < work.n_groups; g++)
        d_grads[g] = work.groups[g].group->d_out;
    rc = rank_work_backward(&work, 0, d_grads, learning_rate, err);
    mem_free(d_grads);
    rank_work_close(&work);
    return rc;
}

static int apply_rank(const struct placement *placement, uint32_t rank,
                      float learning_rate, struct err *err)
{
    struct rank_work work;
    int rc;

    if (rank_work_open(&work, placement, rank, STEP_BATCH, 0, err))
        return -1;
    rc = rank_work_apply(&work, learning_rate, err);
    rank_work_close(&work);
    return rc;
}

int step_gradients(const struct exchange_set *set, struct err *err)
{
    exchange_fill_gradients(set);
    return exchange_backward(set, err);
}

int step_update(const struct exchange_set *set, float learning_rate,
                struct err *err)
{
    const struct placement *placement = set->placement;

    for (uint32_t r = 0; r < placement->n_ranks; r++)
        if (backward_rank(placement, r, learning_rate, err))
            return -1;
    replica_allreduce(placement);
    for (uint32_t r = 0; r < placement->n_ranks; r++)
        if (apply_rank(placement, r, learning_rate, err))
            return -1;
    return 0;
}
