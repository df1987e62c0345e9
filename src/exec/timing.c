/* SPDX-License-Identifier: MIT */
#include "exec/timing.h"

#include "base/clock.h"
#include "base/interrupt.h"

#define LEARNING_RATE 1e-7F /* tiny, because timed updates are not undone */
/* number of warm-up iterations of work that all ranks do together */
#define N_WARM_UP 2
/*
 * Numbers from which the largest number of operations in an iteration is
 * computed, because a device can hold back only DEVICE_MAX_HELD operations.
 *
 *     GROUP_WORK  operations per group: a forward and a backward, which
 *                 sorts in five passes of two operations. A replicated
 *                 group has a scatter of the same size, and one operation
 *                 per replica.
 *     MARK_WORK   operations per iteration: flushes and marks
 */
#define GROUP_WORK 20
#define MARK_WORK 8

struct timer {
    /* `work`: work on all groups. `others`: work on replicas only; it has no
     * groups if the rank has no replicas. */
    struct rank_work *work, *others;
    /* True if each timed iteration starts only after all its work is queued. */
    bool is_held;
};

/* Returns true if the device can hold back all operations of an iteration until
 * they are queued. */
static bool can_be_held(const struct timer *timer)
{
    size_t n_queued = MARK_WORK + GROUP_WORK * timer->work->n_groups;

    for (size_t g = 0; g < timer->others->n_groups; g++)
        n_queued += GROUP_WORK + timer->others->groups[g].group.n_pieces;
    return n_queued <= DEVICE_MAX_HELD;
}

/* Numbers of the time marks of an iteration; pairs of begin and end. */
enum {
    FORWARD_BEGIN,
    FORWARD_END,
    BACKWARD_BEGIN,
    BACKWARD_END,
    APPLY_BEGIN,
    APPLY_END,
    CACHE_BEGIN /* the end is FORWARD_BEGIN */
};

/* Queues the work of one iteration on the device, and does not wait for it. */
static int queue_once(struct timer *timer, unsigned set, struct err *err)
{
    struct rank_work *work = timer->work;
    struct device *device = work->placement->device;

    if (device_flush(device, err) ||
        (work->next_number && device_mark(device, CACHE_BEGIN, err)))
        return -1;
    rank_work_fill(work, set);
    if (device_mark(device, FORWARD_BEGIN, err) ||
        rank_work_forward(work, set, err) ||
        device_mark(device, FORWARD_END, err) || device_flush(device, err) ||
        device_mark(device, BACKWARD_BEGIN, err) ||
        rank_work_backward(work, set, LEARNING_RATE, err) ||
        device_mark(device, BACKWARD_END, err))
        return -1;
    if (!timer->others->n_groups)
        return 0;
    if (rank_work_backward(timer->others, set, LEARNING_RATE, err) ||
        device_mark(device, APPLY_BEGIN, err) ||
        rank_work_apply_replicas(work->placement, work->rank, LEARNING_RATE,
                                 err))
        return -1;
    return device_mark(device, APPLY_END, err);
}

/* Times one iteration. `ms` gets the times of filling caches, of forward with
 * it, of backward with all updates, of the update of replicas, and the total. A
 * warm-up iteration is not held back until its work is queued, because loading
 * a kernel for the first time waits for the device. */
static int rank_once(void *ctx, unsigned number, double *ms, struct err *err)
{
    struct timer *timer = ctx;
    struct device *device = timer->work->placement->device;
    unsigned n_sets = timer->work->n_sets;
    bool is_held = timer->is_held && number >= n_sets;
    double fill_ms = 0, apply_ms = 0;
    struct err ignored;
    int rc;

    if (interrupt_requested())
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    if (rank_work_renew(timer->work, number % n_sets, err) ||
        (is_held && device_hold(device, err)))
        return -1;
    rc = queue_once(timer, number % n_sets, err);
    if ((is_held && device_release(device, rc ? &ignored : err)) || rc ||
        (timer->work->next_number &&
         device_elapsed(device, CACHE_BEGIN, FORWARD_BEGIN, &fill_ms, err)) ||
        device_elapsed(device, FORWARD_BEGIN, FORWARD_END, &ms[1], err) ||
        device_elapsed(device, BACKWARD_BEGIN, BACKWARD_END, &ms[2], err) ||
        (timer->others->n_groups &&
         device_elapsed(device, APPLY_BEGIN, APPLY_END, &apply_ms, err)))
        return -1;
    ms[0] = fill_ms;
    ms[1] += fill_ms;
    ms[2] += apply_ms;
    ms[3] = apply_ms;
    ms[4] = ms[1] + ms[2];
    return 0;
}

int timing_rank(struct exec_rank *rank, struct rank_work *work,
                struct rank_work *others,
                struct interference_probe *interference, unsigned n_iterations,
                struct err *err)
{
    struct repetition_conditions conditions;
    struct timing parts[5];
    struct timer timer = {.work = work, .others = others};
    struct repetitions repetitions = {rank_once,    &timer, 5,   work->n_sets,
                                      n_iterations, 0,      NULL};

    timer.is_held = can_be_held(&timer);
    if (rank_work_warm(work, &rank->n_fills, err) ||
        repetitions_time_quietly(parts, &repetitions, work->placement->device,
                                 interference, &conditions, err))
        return -1;
    rank->fill = parts[0];
    rank->forward = parts[1];
    rank->backward = parts[2];
    rank->compute = parts[4];
    rank->phases_ms[PHASE_FORWARD] = rank->forward.median_ms;
    rank->phases_ms[PHASE_UPDATE] = parts[3].median_ms;
    /* The backward phase is the rest of compute, so that the phases add up. */
    rank->phases_ms[PHASE_BACKWARD] =
        fmax(rank->compute.median_ms - rank->phases_ms[PHASE_FORWARD] -
                 rank->phases_ms[PHASE_UPDATE],
             0);
    rank->health = conditions.after;
    rank->disturbed = conditions.is_disturbed;
    return 0;
}

/* --- ids, and work of all ranks together --- */

struct ids {
    struct input *input;
    uint32_t rank;
};

static int ids_once(void *ctx, unsigned number, double *ms, struct err *err)
{
    const struct ids *ids = ctx;
    double begin_ms = clock_ms();

    (void)number;
    (void)err;
    input_pack(ids->input, ids->rank);
    input_permute(ids->input, ids->rank, NULL);
    *ms = clock_ms() - begin_ms;
    return 0;
}

int timing_ids(double *ms, struct input *input, uint32_t rank,
               unsigned n_iterations, struct err *err)
{
    struct ids ids = {input, rank};
    struct repetitions repetitions = {ids_once,     &ids, 1,   N_WARM_UP,
                                      n_iterations, 0,    NULL};
    struct timing timing;

    if (repetitions_time(&timing, &repetitions, err))
        return -1;
    *ms = timing.median_ms;
    return 0;
}

struct exchanges {
    struct exchange_set *set;
    struct input *input;
};
static const enum phase exchanged[] = {PHASE_INPUT, PHASE_OUTPUT,
                                       PHASE_GRADIENT, PHASE_REDUCE};
#define N_EXCHANGED (sizeof exchanged / sizeof *exchanged)

static int exchange(const struct exchanges *exchanges, enum phase phase,
                    struct err *err)
{
    if (phase == PHASE_INPUT)
        return input_exchange(exchanges->input, err);
    if (phase == PHASE_REDUCE)
        return exchange_allreduce(exchanges->set, err);
    return exchange_outputs(exchanges->set, phase == PHASE_GRADIENT, err);
}

static int exchanges_once(void *ctx, unsigned number, double *ms,
                          struct err *err)
{
    const struct exchanges *exchanges = ctx;
    const struct placement *placement = exchanges->set->placement;
    struct device *device = placement->device;

    (void)number;
    for (size_t i = 0; i < N_EXCHANGED; i++)
        if (world_barrier(placement->comm->world, err) ||
            device_delay(device, err) || device_mark(device, 0, err) ||
            exchange(exchanges, exchanged[i], err) ||
            device_mark(device, 1, err) ||
            device_elapsed(device, 0, 1, &ms[i], err))
            return -1;
    return 0;
}

int timing_exchanges(struct timing exchanges[N_PHASES],
                     struct exchange_set *set, struct input *input,
                     unsigned n_iterations, struct err *err)
{
    struct exchanges all = {set, input};
    struct timing parts[N_EXCHANGED];
    struct repetitions repetitions = {.once = exchanges_once,
                                      .ctx = &all,
                                      .n_parts = N_EXCHANGED,
                                      .n_warm_up = N_WARM_UP,
                                      .n = n_iterations,
                                      .world = set->placement->comm->world};

    if (repetitions_time(parts, &repetitions, err))
        return -1;
    for (size_t i = 0; i < N_EXCHANGED; i++)
        exchanges[exchanged[i]] = parts[i];
    return 0;
}

/* Work of all processes together, if each process is one rank. */
struct together {
    const struct exchange_set *set;
    /* [n_works], owned: work on the whole batch, followed by the work on each
     * chunk if there are several chunks. */
    struct rank_work *works;
    size_t n_works;
};

/* Runs the lookups of n works one after the other. The outputs of a work are
 * sent while the next work looks up. */
static int look_up(const struct together *together, size_t first, uint32_t n,
                   unsigned number, struct err *err)
{
    const struct exchange_set *set = together->set;
    struct rank_work *works = together->works + first;

    for (uint32_t c = 0; c < n; c++) {
        rank_work_fill(&works[c], number % works[c].n_sets);
        if (rank_work_forward(&works[c], number % works[c].n_sets, err) ||
            exchange_start(set, false, c, n, err))
            return -1;
    }
    return comm_finish(set->placement->comm, err);
}

/* Times one step. The outputs are used as gradients, too: the backward exchange
 * sends them back to the place from which they came. */
static int step_once(void *ctx, unsigned number, double *ms, struct err *err)
{
    const struct together *together = ctx;
    const struct placement *placement = together->set->placement;
    struct rank_work *work = together->works;
    double begin_ms;

    if (rank_work_renew(work, number % work->n_sets, err) ||
        world_barrier(placement->comm->world, err))
        return -1;
    begin_ms = clock_ms();
    if (look_up(together, 0, 1, number, err) ||
        exchange_outputs(together->set, true, err) ||
        rank_work_backward(work, number % work->n_sets, LEARNING_RATE, err) ||
        exchange_allreduce(together->set, err) ||
        rank_work_apply_replicas(placement, work->rank, LEARNING_RATE, err) ||
        device_wait(placement->device, err))
        return -1;
    *ms = clock_ms() - begin_ms;
    return 0;
}

/* Times the lookups and their exchange twice: in one part, and in chunks. The
 * two runs use different batches, so that caches are equally cold for both. */
static int chunks_once(void *ctx, unsigned number, double *ms, struct err *err)
{
    const struct together *together = ctx;
    const struct placement *placement = together->set->placement;
    unsigned n_sets = together->works[0].n_sets;

    for (unsigned k = 0; k < 2; k++) {
        double begin_ms;

        if (world_barrier(placement->comm->world, err))
            return -1;
        begin_ms = clock_ms();
        if (look_up(together, k, k ? placement->n_chunks : 1,
                    number + k * (n_sets / 2), err) ||
            device_wait(placement->device, err))
            return -1;
        ms[k] = clock_ms() - begin_ms;
    }
    return 0;
}

static int open_together(struct together *together,
                         const struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;
    uint32_t n = placement->n_chunks;

    *together = (struct together){
        .set = set,
        .works = mem_alloc(n + (size_t)1, sizeof(struct rank_work)),
    };
    for (uint32_t k = 0; k < (n > 1 ? n + 1 : 1); k++) {
        together->works[k] = rank_work_timed(placement, placement->here.begin,
                                             k ? k - 1 : 0, k ? n : 1);
        if (rank_work_open(&together->works[k], WORK_ALL, err))
            return -1;
        together->n_works++;
    }
    return 0;
}

int timing_together(struct timing *step, struct timing in_chunks[2],
                    const struct exchange_set *set, unsigned n_iterations,
                    struct err *err)
{
    struct world *world = set->placement->comm->world;
    struct together together;
    struct repetitions steps = {step_once,    &together, 1,    N_WARM_UP,
                                n_iterations, 0,         world};
    struct repetitions chunks = {chunks_once,  &together, 2,    N_WARM_UP,
                                 n_iterations, 0,         world};
    int rc = open_together(&together, set, err) ||
             repetitions_time(step, &steps, err);

    if (!rc && together.n_works > 1)
        rc = repetitions_time(in_chunks, &chunks, err);
    while (together.n_works)
        rank_work_close(&together.works[--together.n_works]);
    mem_free(together.works);
    return rc ? -1 : 0;
}
