/* SPDX-License-Identifier: MIT */
#include "exec/rank_timing.h"

#include "base/stats.h"

#include <assert.h>

#define TIMING_LEARNING_RATE 1e-7F
#define GRADIENT_SEED 1

/* What a timed iteration runs. */
enum { PHASE_FORWARD = 1, PHASE_BACKWARD = 2 };

struct timer {
    struct rank_work *work;
    float **d_grads; /* [n_groups], each owned */
    /* [n_groups]: a replica's look-ups of all samples, its own and others' */
    struct index_batch (*whole)[LOOKUP_MAX_COLD_SETS];
    bool has_replicas;
};

static void close_timer(struct timer *timer)
{
    struct device *device = timer->work->placement->device;

    for (size_t g = 0; g < timer->work->n_groups; g++) {
        device_free(device, timer->d_grads[g]);
        for (unsigned k = 0; k < timer->work->n_sets; k++)
            index_batch_release(&timer->whole[g][k]);
    }
    mem_free(timer->d_grads);
    mem_free(timer->whole);
}

static int open_gradient(float **d_grad, const struct group *group,
                         struct device *device, struct err *err)
{
    uint64_t n = (uint64_t)group->n_bags * group->out_dim;
    void *d_ptr;

    if (!n)
        return 0;
    if (device_alloc(device, &d_ptr, (size_t)n * sizeof(float), err))
        return -1;
    *d_grad = d_ptr;
    return device_fill(device, d_ptr, n, PRECISION_FP32, GRADIENT_SEED, err);
}

/* The group as it would be if no other rank had a replica. */
static struct group whole_group(const struct placement *placement,
                                const struct group *group)
{
    struct group whole = *group;

    whole.sample_begin = 0;
    whole.n_samples = placement->batch;
    whole.n_bags = placement->batch * group->n_outputs;
    return whole;
}

static int open_timer(struct timer *timer, struct rank_work *work,
                      struct err *err)
{
    const struct placement *placement = work->placement;

    *timer = (struct timer){
        .work = work,
        .d_grads = mem_alloc(work->n_groups, sizeof(*timer->d_grads)),
        .whole = mem_alloc(work->n_groups, sizeof(*timer->whole)),
    };
    for (size_t g = 0; g < work->n_groups; g++) {
        const struct group *group = work->groups[g].group;
        struct group whole = whole_group(placement, group);

        if (open_gradient(&timer->d_grads[g], group, placement->device, err)) {
            close_timer(timer);
            return -1;
        }
        timer->has_replicas |= group->replica;
        for (unsigned k = 0; group->replica && k < work->n_sets; k++)
            index_batch_init(&timer->whole[g][k], placement, &whole,
                             work->first_number + k);
    }
    return 0;
}

/* Stands in for the all-reduce: the rows that any rank looked up get some
 * gradient, so that the update has the rows of a real step. */
static void touch_rows(const struct timer *timer, unsigned set)
{
    const struct rank_work *work = timer->work;

    for (size_t g = 0; g < work->n_groups; g++) {
        const struct group *group = work->groups[g].group;
        const struct index_batch *batch = &timer->whole[g][set];
        size_t n_bags = whole_group(work->placement, group).n_bags;

        for (uint32_t i = 0; group->replica && i < group->n_pieces; i++) {
            const struct piece *piece =
                &work->placement->pieces[group->pieces[i]];

            for (uint64_t j = batch->offsets[i * n_bags];
                 j < batch->offsets[(i + 1) * n_bags]; j++)
                piece->d_dense[(uint64_t)batch->indices[j] * piece->width] +=
                    1e-3F;
        }
    }
}

static int run_update(struct timer *timer, unsigned set, double *ms,
                      struct err *err)
{
    struct device *device = timer->work->placement->device;
    double update_ms;

    touch_rows(timer, set);
    if (device_mark(device, 2, err) ||
        rank_work_apply(timer->work, TIMING_LEARNING_RATE, err) ||
        device_mark(device, 3, err) ||
        device_elapsed(device, 2, 3, &update_ms, err))
        return -1;
    *ms += update_ms;
    return 0;
}

static int run_once(struct timer *timer, unsigned phases, unsigned set,
                    double *ms, struct err *err)
{
    struct device *device = timer->work->placement->device;

    if (device_mark(device, 0, err))
        return -1;
    if ((phases & PHASE_FORWARD) && rank_work_forward(timer->work, set, err))
        return -1;
    if ((phases & PHASE_BACKWARD) &&
        rank_work_backward(timer->work, set,
                           (const float *const *)timer->d_grads,
                           TIMING_LEARNING_RATE, err))
        return -1;
    if (device_mark(device, 1, err) || device_elapsed(device, 0, 1, ms, err))
        return -1;
    if ((phases & PHASE_BACKWARD) && timer->has_replicas)
        return run_update(timer, set, ms, err);
    return 0;
}

static struct timing summarize(double *ms, unsigned n)
{
    return (struct timing){
        .median_ms = stats_median(ms, n),
        .p10_ms = stats_quantile(ms, n, 0.1),
        .p90_ms = stats_quantile(ms, n, 0.9),
    };
}

static int time_phases(struct timing *timing, struct timer *timer,
                       unsigned phases, unsigned n_iterations, double *ms,
                       struct err *err)
{
    unsigned n_sets = timer->work->n_sets;

    assert(n_sets);
    for (unsigned k = 0; k < n_sets; k++) /* warm-up */
        if (run_once(timer, phases, k, ms, err))
            return -1;
    for (unsigned i = 0; i < n_iterations; i++)
        if (run_once(timer, phases, i % n_sets, ms + i, err))
            return -1;
    *timing = summarize(ms, n_iterations);
    return 0;
}

int rank_timing_compute(struct timing *forward, struct timing *backward,
                        struct timing *compute, struct rank_work *work,
                        unsigned n_iterations, struct err *err)
{
    double *ms = mem_alloc(n_iterations, sizeof(*ms));
    struct timer timer;
    int rc = -1;

    if (open_timer(&timer, work, err)) {
        mem_free(ms);
        return -1;
    }
    if (time_phases(forward, &timer, PHASE_FORWARD, n_iterations, ms, err))
        goto out;
    if (time_phases(backward, &timer, PHASE_BACKWARD, n_iterations, ms, err))
        goto out;
    if (time_phases(compute, &timer, PHASE_FORWARD | PHASE_BACKWARD,
                    n_iterations, ms, err))
        goto out;
    rc = 0;
out:
    close_timer(&timer);
    mem_free(ms);
    return rc;
}

static int exchange_once(const struct exchange_set *set, bool backward,
                         double *ms, struct err *err)
{
    struct device *device = set->placement->device;

    if (device_mark(device, 0, err))
        return -1;
    if (backward) {
        if (exchange_backward(set, err))
            return -1;
        replica_allreduce(set->placement);
    } else if (exchange_forward(set, err)) {
        return -1;
    }
    if (device_mark(device, 1, err))
        return -1;
    return device_elapsed(device, 0, 1, ms, err);
}

int rank_timing_exchange(struct timing *forward, struct timing *backward,
                         const struct exchange_set *set, unsigned n_iterations,
                         struct err *err)
{
    double *fwd_ms = mem_alloc(n_iterations, sizeof(*fwd_ms));
    double *bwd_ms = mem_alloc(n_iterations, sizeof(*bwd_ms));
    int rc = -1;

    for (unsigned i = 0; i < 2; i++) /* warm-up */
        if (exchange_once(set, false, fwd_ms, err) ||
            exchange_once(set, true, bwd_ms, err))
            goto out;
    for (unsigned i = 0; i < n_iterations; i++)
        if (exchange_once(set, false, fwd_ms + i, err) ||
            exchange_once(set, true, bwd_ms + i, err))
            goto out;
    *forward = summarize(fwd_ms, n_iterations);
    *backward = summarize(bwd_ms, n_iterations);
    rc = 0;
out:
    mem_free(fwd_ms);
    mem_free(bwd_ms);
    return rc;
}
