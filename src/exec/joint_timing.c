/* SPDX-License-Identifier: MIT */
#include "exec/joint_timing.h"

#include "base/clock.h"
#include "exec/rank_timing.h"
#include "exec/rank_work.h"
#include "exec/replica.h"

#include <math.h>

#define N_WARM_UP 2

/* ms[n] of this process become those of the last process. */
static int latest_of_all(struct world *world, double *ms, unsigned n,
                         struct err *err)
{
    uint32_t size = world_size(world);
    double *all = mem_alloc((size_t)size * n, sizeof(*all));
    int rc = world_all_gather(world, ms, n * sizeof(*ms), all, err);

    for (unsigned i = 0; !rc && i < n; i++)
        for (uint32_t p = 0; p < size; p++)
            ms[i] = fmax(ms[i], all[(size_t)p * n + i]);
    mem_free(all);
    return rc;
}

static int summarize(struct timing *timing, struct world *world, double *ms,
                     unsigned n, struct err *err)
{
    if (latest_of_all(world, ms, n, err))
        return -1;
    *timing = rank_timing_of(ms, n);
    return 0;
}

static int exchange_once(const struct exchange_set *set, bool is_backward,
                         double *ms, struct err *err)
{
    struct device *device = set->placement->device;
    struct world *world = comm_world(set->placement->comm);

    if (world_barrier(world, err) || device_mark(device, 0, err))
        return -1;
    if (is_backward
            ? exchange_backward(set, err) || exchange_allreduce(set, err)
            : exchange_forward(set, err))
        return -1;
    if (device_mark(device, 1, err))
        return -1;
    return device_elapsed(device, 0, 1, ms, err);
}

int joint_timing_exchange(struct timing *forward, struct timing *backward,
                          const struct exchange_set *set, unsigned n_iterations,
                          struct err *err)
{
    struct world *world = comm_world(set->placement->comm);
    double *fwd_ms = mem_alloc(n_iterations, sizeof(*fwd_ms));
    double *bwd_ms = mem_alloc(n_iterations, sizeof(*bwd_ms));
    int rc = -1;

    for (unsigned i = 0; i < N_WARM_UP; i++)
        if (exchange_once(set, false, fwd_ms, err) ||
            exchange_once(set, true, bwd_ms, err))
            goto out;
    for (unsigned i = 0; i < n_iterations; i++)
        if (exchange_once(set, false, fwd_ms + i, err) ||
            exchange_once(set, true, bwd_ms + i, err))
            goto out;
    if (summarize(forward, world, fwd_ms, n_iterations, err) ||
        summarize(backward, world, bwd_ms, n_iterations, err))
        goto out;
    rc = 0;
out:
    mem_free(fwd_ms);
    mem_free(bwd_ms);
    return rc;
}

/* Outputs serve as gradients: they come back over themselves. */
static int step_once(const struct exchange_set *set, struct rank_work *works,
                     unsigned batch, double *ms, struct err *err)
{
    const struct placement *placement = set->placement;
    uint32_t n = placement->here.end - placement->here.begin;
    double begin_ms;

    if (world_barrier(comm_world(placement->comm), err))
        return -1;
    begin_ms = clock_ms();
    for (uint32_t i = 0; i < n; i++)
        if (rank_work_forward(&works[i], batch % works[i].n_sets, err))
            return -1;
    if (exchange_forward(set, err) || exchange_backward(set, err))
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (rank_work_backward_inplace(&works[i], batch % works[i].n_sets,
                                       TIMING_LEARNING_RATE, err))
            return -1;
    if (exchange_allreduce(set, err))
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (replica_apply(placement, works[i].rank, TIMING_LEARNING_RATE, err))
            return -1;
    if (device_wait(placement->device, err))
        return -1;
    *ms = clock_ms() - begin_ms;
    return 0;
}

int joint_timing_step(struct timing *step, const struct exchange_set *set,
                      unsigned first_number, unsigned n_iterations,
                      struct err *err)
{
    const struct placement *placement = set->placement;
    struct rank_range here = placement->here;
    struct rank_work *works = mem_alloc(here.end - here.begin, sizeof(*works));
    double *ms = mem_alloc(n_iterations, sizeof(*ms));
    uint32_t n = 0;
    int rc = -1;

    for (; here.begin + n < here.end; n++)
        if (rank_work_open(
                &works[n], placement, here.begin + n, WORK_ALL, first_number,
                rank_work_n_cold_sets(placement, here.begin + n), err))
            goto out;
    for (unsigned i = 0; i < N_WARM_UP; i++)
        if (step_once(set, works, i, ms, err))
            goto out;
    for (unsigned i = 0; i < n_iterations; i++)
        if (step_once(set, works, i, ms + i, err))
            goto out;
    if (summarize(step, comm_world(placement->comm), ms, n_iterations, err))
        goto out;
    rc = 0;
out:
    for (uint32_t i = 0; i < n; i++)
        rank_work_close(&works[i]);
    mem_free(works);
    mem_free(ms);
    return rc;
}
