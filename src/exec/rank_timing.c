/* SPDX-License-Identifier: MIT */
#include "exec/rank_timing.h"

#include "base/stats.h"
#include "exec/replica.h"

#include <assert.h>

#define GRADIENT_SEED 1
/* Pieces of work that an iteration queues, at most; see DEVICE_MAX_HELD. For a
 * group a forward and a backward, which sorts in five passes of two pieces;
 * where it is replicated, a scatter like that and one piece a replica; and
 * flushes and marks. */
#define GROUP_WORK 20
#define MARK_WORK 8

/*
 * A replica is updated after the all-reduce, in every row that any rank looked
 * up, and a rank alone has no others. In their stead the look-ups of the whole
 * batch are scattered as one bag a table, untimed, so that the update has the
 * rows of a real step.
 */
struct others {
    struct lookup *scatter;
    struct index_batch sets[LOOKUP_MAX_COLD_SETS]; /* of all samples */
    void *d_begins[LOOKUP_MAX_COLD_SETS]; /* [n_pieces + 1] offsets, owned */
    void *d_grad;                         /* [out_dim], owned */
};

struct timer {
    struct rank_work *work;
    void **d_grads;        /* [n_groups], each owned */
    struct others *others; /* [n_groups]; zeroed where nothing is replicated */
    bool has_replicas;
    bool is_held; /* what is timed */
};

static void close_others(struct others *others, struct device *device)
{
    lookup_close(others->scatter);
    for (unsigned k = 0; k < LOOKUP_MAX_COLD_SETS; k++) {
        index_batch_release(&others->sets[k]);
        device_free(device, others->d_begins[k]);
    }
    device_free(device, others->d_grad);
}

static void close_timer(struct timer *timer)
{
    struct device *device = timer->work->placement->device;

    for (size_t g = 0; g < timer->work->n_groups; g++) {
        device_free(device, timer->d_grads[g]);
        close_others(&timer->others[g], device);
    }
    mem_free(timer->d_grads);
    mem_free(timer->others);
}

static int open_gradient(void **d_grad, uint64_t n, enum precision precision,
                         struct device *device, struct err *err)
{
    if (!n)
        return 0;
    if (device_alloc(device, d_grad, (size_t)n * precision_bytes(precision),
                     err))
        return -1;
    return device_fill(device, *d_grad, n, precision, GRADIENT_SEED, err);
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

static int open_others(struct others *others, const struct rank_work *work,
                       const struct group *group, struct err *err)
{
    const struct placement *placement = work->placement;
    struct group whole = whole_group(placement, group);
    size_t begins_bytes = (group->n_pieces + (size_t)1) * sizeof(uint64_t);
    uint64_t max_lookups = 0;

    for (unsigned k = 0; k < work->n_sets; k++) {
        struct index_batch *batch = &others->sets[k];

        if (index_batch_init(batch, placement, &whole, work->first_number + k,
                             err) ||
            device_alloc(placement->device, &others->d_begins[k], begins_bytes,
                         err) ||
            device_upload(placement->device, others->d_begins[k], batch->begins,
                          begins_bytes, err))
            return -1;
        if (batch->n_lookups > max_lookups)
            max_lookups = batch->n_lookups;
    }
    if (open_gradient(&others->d_grad, group->out_dim, PRECISION_FP32,
                      placement->device, err))
        return -1;
    return replica_open_scatter(&others->scatter, placement, group, 1,
                                max_lookups, err);
}

static int open_timer(struct timer *timer, struct rank_work *work,
                      struct err *err)
{
    struct device *device = work->placement->device;
    size_t n_queued = MARK_WORK;

    *timer = (struct timer){
        .work = work,
        .d_grads = mem_alloc(work->n_groups, sizeof(*timer->d_grads)),
        .others = mem_alloc(work->n_groups, sizeof(*timer->others)),
    };
    for (size_t g = 0; g < work->n_groups; g++) {
        const struct group *group = work->groups[g].group;

        timer->has_replicas |= group->replica;
        n_queued += GROUP_WORK;
        if (group->replica)
            n_queued += GROUP_WORK + group->n_pieces;
        if (open_gradient(&timer->d_grads[g],
                          (uint64_t)group->n_bags * group->out_dim,
                          group->precision, device, err) ||
            (group->replica &&
             open_others(&timer->others[g], work, group, err))) {
            close_timer(timer);
            return -1;
        }
    }
    timer->is_held = n_queued <= DEVICE_MAX_HELD;
    return 0;
}

static int scatter_others(const struct timer *timer, unsigned set,
                          struct err *err)
{
    for (size_t g = 0; g < timer->work->n_groups; g++) {
        const struct others *others = &timer->others[g];
        struct lookup_batch batch = {
            .d_indices = others->sets[set].d_indices,
            .d_offsets = others->d_begins[set],
            .n_lookups = others->sets[set].n_lookups,
        };

        if (others->scatter &&
            lookup_backward(others->scatter, &batch, others->d_grad,
                            REPLICA_SCATTER_RATE, err))
            return -1;
    }
    return 0;
}

/* Marks of an iteration, in pairs. */
enum {
    FORWARD_BEGIN,
    FORWARD_END,
    BACKWARD_BEGIN,
    BACKWARD_END,
    APPLY_BEGIN,
    APPLY_END
};

/* Hands one iteration over to the device; no waiting in it. */
static int queue_once(struct timer *timer, unsigned set, struct err *err)
{
    struct rank_work *work = timer->work;
    struct device *device = work->placement->device;

    if (device_flush(device, err) || device_mark(device, FORWARD_BEGIN, err) ||
        rank_work_forward(work, set, err) ||
        device_mark(device, FORWARD_END, err) || device_flush(device, err) ||
        device_mark(device, BACKWARD_BEGIN, err) ||
        rank_work_backward(work, set, (const void *const *)timer->d_grads,
                           TIMING_LEARNING_RATE, err) ||
        device_mark(device, BACKWARD_END, err))
        return -1;
    if (!timer->has_replicas)
        return 0;
    if (scatter_others(timer, set, err) ||
        device_mark(device, APPLY_BEGIN, err) ||
        replica_apply(work->placement, work->rank, TIMING_LEARNING_RATE, err))
        return -1;
    return device_mark(device, APPLY_END, err);
}

struct lap {
    double forward_ms, backward_ms;
};

/* What only warms up is not held back: its kernels may have to be loaded,
 * which waits for the device. */
static int run_once(struct timer *timer, unsigned set, bool is_timed,
                    struct lap *lap, struct err *err)
{
    struct device *device = timer->work->placement->device;
    bool is_held = timer->is_held && is_timed;
    double apply_ms = 0;
    struct err ignored;
    int rc;

    if (is_held && device_hold(device, err))
        return -1;
    rc = queue_once(timer, set, err);
    if (is_held && device_release(device, rc ? &ignored : err))
        return -1;
    if (rc)
        return -1;
    if (device_elapsed(device, FORWARD_BEGIN, FORWARD_END, &lap->forward_ms,
                       err) ||
        device_elapsed(device, BACKWARD_BEGIN, BACKWARD_END, &lap->backward_ms,
                       err) ||
        (timer->has_replicas &&
         device_elapsed(device, APPLY_BEGIN, APPLY_END, &apply_ms, err)))
        return -1;
    lap->backward_ms += apply_ms;
    return 0;
}

struct timing rank_timing_of(double *ms, unsigned n)
{
    return (struct timing){
        .median_ms = stats_median(ms, n),
        .p10_ms = stats_quantile(ms, n, 0.1),
        .p90_ms = stats_quantile(ms, n, 0.9),
    };
}

int rank_timing(struct rank_times *times, struct rank_work *work,
                unsigned n_iterations, struct err *err)
{
    double *ms = mem_alloc(n_iterations, 3 * sizeof(*ms));
    double *forward = ms, *backward = ms + n_iterations;
    double *compute = backward + n_iterations;
    unsigned n_sets = work->n_sets;
    struct timer timer;
    struct lap lap;
    int rc = -1;

    assert(n_sets);
    if (open_timer(&timer, work, err)) {
        mem_free(ms);
        return -1;
    }
    for (unsigned k = 0; k < n_sets; k++) /* warm-up */
        if (run_once(&timer, k, false, &lap, err))
            goto out;
    for (unsigned i = 0; i < n_iterations; i++) {
        if (run_once(&timer, i % n_sets, true, &lap, err))
            goto out;
        forward[i] = lap.forward_ms;
        backward[i] = lap.backward_ms;
        compute[i] = lap.forward_ms + lap.backward_ms;
    }
    times->forward = rank_timing_of(forward, n_iterations);
    times->backward = rank_timing_of(backward, n_iterations);
    times->compute = rank_timing_of(compute, n_iterations);
    rc = 0;
out:
    close_timer(&timer);
    mem_free(ms);
    return rc;
}
