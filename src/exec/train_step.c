/* SPDX-License-Identifier: MIT */
#include "exec/train_step.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "exec/pooled.h"

/* One part of a step: the work of a rank, or an exchange of all ranks. */
typedef int part_fn(struct train_state *run, unsigned step, uint32_t rank,
                    struct err *err);

static int forward(struct train_state *run, unsigned step, uint32_t rank,
                   struct err *err)
{
    rank_work_fill(&run->feed.works[rank], step % FEED_N_SETS);
    return rank_work_forward(&run->feed.works[rank], step % FEED_N_SETS, err);
}

static int output(struct train_state *run, unsigned step, uint32_t rank,
                  struct err *err)
{
    (void)step, (void)rank;
    return exchange_outputs(&run->set, false, err);
}

static int dense_part(struct train_state *run, unsigned step, uint32_t rank,
                      struct err *err)
{
    struct dense_net *net = &run->nets[rank];

    return feed_features(&run->feed, step % run->feed.n_batches, rank, net,
                         err) ||
                   pooled_gather(&run->set, rank, net, err) ||
                   dense_net_forward(net, err) ||
                   dense_net_backward(
                       net, placement_copy_samples(&run->placement), err) ||
                   pooled_scatter(&run->set, rank, net, err)
               ? -1
               : 0;
}

static int gradient(struct train_state *run, unsigned step, uint32_t rank,
                    struct err *err)
{
    (void)step, (void)rank;
    return exchange_outputs(&run->set, true, err);
}

/* Divides sums over all ranks by the number of sharding groups. The gradients
 * that the ranks compute are those of the mean loss of their group; the mean
 * over the groups is the gradient of the mean loss of the global batch. */
static int average_groups(const struct placement *placement, float *d_sums,
                          uint64_t n, struct err *err)
{
    const struct elementwise job = {.kind = ELEMENTWISE_SCALE,
                                    .n_rows = 1,
                                    .n_cols = n,
                                    .out = {d_sums, n},
                                    .a = {d_sums, n},
                                    .scale = 1.0F / (float)placement->n_copies};

    return placement->n_copies > 1 && n
               ? device_elementwise(placement->device, &job, err)
               : 0;
}

static int dense_reduce(struct train_state *run, unsigned step, uint32_t rank,
                        struct err *err)
{
    const struct placement *placement = &run->placement;
    const uint64_t n = run->options->dense->n_parameters;
    float **d_data = mem_alloc(placement->n_ranks, sizeof(*d_data));
    int rc;

    (void)step, (void)rank;
    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        d_data[r] = run->nets[r].d_gradients;
    rc = comm_sum(placement->comm, d_data, run->d_scratch, n, err);
    for (uint32_t r = placement->here.begin; !rc && r < placement->here.end;
         r++)
        rc = average_groups(placement, d_data[r], n, err);
    mem_free(d_data);
    return rc;
}

static int backward(struct train_state *run, unsigned step, uint32_t rank,
                    struct err *err)
{
    return rank_work_backward(&run->feed.works[rank], step % FEED_N_SETS,
                              STEP_RATE, err);
}

static int replicas(struct train_state *run, unsigned step, uint32_t rank,
                    struct err *err)
{
    const struct placement *placement = &run->placement;
    const struct rank_range here = placement->here;

    (void)step, (void)rank;
    if (exchange_allreduce(&run->set, err))
        return -1;
    for (uint32_t r = here.begin; r < here.end; r++)
        if (average_groups(placement, placement->d_dense[r], placement->n_dense,
                           err) ||
            rank_work_apply_replicas(placement, r, STEP_RATE, err))
            return -1;
    return 0;
}

static int dense_update(struct train_state *run, unsigned step, uint32_t rank,
                        struct err *err)
{
    (void)step;
    return dense_net_update(&run->nets[rank], err);
}

static int input(struct train_state *run, unsigned step, uint32_t rank,
                 struct err *err)
{
    (void)rank;
    return feed_ids(&run->feed, step % run->feed.n_batches, step % FEED_N_SETS,
                    err);
}

/* Parts of a step. If is_of_rank is false, the part runs once for all ranks of
 * the process. */
static const struct {
    part_fn *run;
    bool is_of_rank;
} parts[N_TRAIN_PHASES] = {
    [TRAIN_INPUT] = {input, false},
    [TRAIN_FORWARD] = {forward, true},
    [TRAIN_OUTPUT] = {output, false},
    [TRAIN_DENSE] = {dense_part, true},
    [TRAIN_GRADIENT] = {gradient, false},
    [TRAIN_DENSE_REDUCE] = {dense_reduce, false},
    [TRAIN_BACKWARD] = {backward, true},
    [TRAIN_REPLICAS] = {replicas, false},
    [TRAIN_DENSE_UPDATE] = {dense_update, true},
};

static struct step_times *times_of(const struct train_state *run, unsigned step,
                                   uint32_t rank)
{
    return &run->times[step * (size_t)run->placement.n_ranks + rank];
}

/* Runs a part once and returns its time in *ms. */
static int time_once(struct train_state *run, enum train_phase phase,
                     unsigned step, uint32_t rank, double *ms, struct err *err)
{
    struct device *device = run->placement.device;

    return device_mark(device, 0, err) ||
                   parts[phase].run(run, step, rank, err) ||
                   device_mark(device, 1, err) ||
                   device_elapsed(device, 0, 1, ms, err)
               ? -1
               : 0;
}

static int run_part(struct train_state *run, enum train_phase phase,
                    unsigned step, struct err *err)
{
    const struct rank_range here = run->placement.here;
    double ms = 0;

    for (uint32_t r = here.begin; r < here.end; r++) {
        if ((r == here.begin || parts[phase].is_of_rank) &&
            time_once(run, phase, step, r, &ms, err))
            return -1;
        times_of(run, step, r)->phases_ms[phase] = ms;
    }
    return 0;
}

/* Runs the parts from `first` to `last` of a step. */
static int run_parts(struct train_state *run, unsigned step,
                     enum train_phase first, enum train_phase last,
                     struct err *err)
{
    for (unsigned phase = first; phase <= last; phase++)
        if (run_part(run, (enum train_phase)phase, step, err))
            return -1;
    return 0;
}

/* Runs the dense part of a step, and the input of the next step in a thread.
 * Exchanges share their links, so the ids travel while no other exchange
 * does. */
static int run_beside_input(struct train_state *run, unsigned step,
                            double *wait_ms, struct err *err)
{
    const struct rank_range here = run->placement.here;
    struct feed_thread *thread = NULL;
    double begin_ms, input_ms = 0;
    struct err ignored;
    int rc;

    if (step + 1 < run->options->n_steps)
        thread = feed_start(&run->feed, (step + 1) % run->feed.n_batches,
                            (step + 1) % FEED_N_SETS);
    rc = run_part(run, TRAIN_DENSE, step, err);
    /* With several processes, the others may never answer the thread. */
    if (rc && run->placement.comm->world->size > 1)
        return -1;
    begin_ms = clock_ms();
    rc = feed_finish(thread, &input_ms, rc ? &ignored : err) || rc;
    *wait_ms = clock_ms() - begin_ms;
    for (uint32_t r = here.begin; thread && r < here.end; r++)
        times_of(run, step + 1, r)->phases_ms[TRAIN_INPUT] = input_ms;
    return rc ? -1 : 0;
}

/* Runs a step whose input is ready, in the order of TorchRec's
 * TrainPipelineSparseDist: the ids of the next batch leave after the outputs of
 * this batch and before the gradients. */
static int run_pipelined(struct train_state *run, unsigned step,
                         double *wait_ms, struct err *err)
{
    return run_parts(run, step, TRAIN_FORWARD, TRAIN_OUTPUT, err) ||
                   run_beside_input(run, step, wait_ms, err) ||
                   run_parts(run, step, TRAIN_GRADIENT, TRAIN_DENSE_UPDATE, err)
               ? -1
               : 0;
}

int train_step_run(struct train_state *run, unsigned step, struct err *err)
{
    const struct placement *placement = &run->placement;
    const bool is_pipelined = run->options->pipeline == PIPELINE_SDD;
    double begin_ms, wait_ms = 0;

    if (interrupt_requested())
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    if (is_pipelined && !step && run_part(run, TRAIN_INPUT, 0, err))
        return -1;
    if (world_barrier(placement->comm->world, err))
        return -1;
    begin_ms = clock_ms();
    if (is_pipelined
            ? run_pipelined(run, step, &wait_ms, err)
            : run_parts(run, step, TRAIN_INPUT, TRAIN_DENSE_UPDATE, err))
        return -1;
    if (device_wait(placement->device, err) ||
        world_barrier(placement->comm->world, err))
        return -1;
    for (uint32_t r = placement->here.begin; r < placement->here.end; r++) {
        times_of(run, step, r)->step_ms = clock_ms() - begin_ms;
        times_of(run, step, r)->wait_ms = wait_ms;
    }
    return 0;
}

int train_sync_run(struct train_state *run, struct err *err)
{
    const struct placement *placement = &run->placement;
    struct sync_result *result = &run->result->sync;
    uint64_t *before = mem_alloc(placement->n_ranks, sizeof(*before));
    uint64_t *after = mem_alloc(placement->n_ranks, sizeof(*after));
    double *ms = &run->syncs_ms[result->n];
    int rc = sync_count(placement, before, err) ||
             sync_time(&run->sync, ms, err) ||
             sync_count(placement, after, err) ||
             world_largest(placement->comm->world, ms, 1, err);

    result->n++;
    result->time = timing_of(run->syncs_ms, result->n);
    result->sent_bytes = sync_most_sent(placement, before, after);
    mem_free(before);
    mem_free(after);
    return rc ? -1 : 0;
}
