/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/interrupt.h"
#include "device/alltoall.h"
#include "device/laps.h"
#include "microbench/rig.h"

#include <assert.h>

/*
 * Benchmark of the all-to-all between ranks. Patterns differ in size, over
 * eight powers of ten, and in how uneven the ranks' widths are. Pattern i is
 * the same in every process. The processes exchange all other values on which
 * they have to agree.
 */

#define FLOAT_BYTES 4.0
#define SMALL_BYTES 65536.0 /* in all; one pattern in four is smaller */
#define MAX_REGION_BYTES ((uint64_t)1 << 30)
/* The batch is the given one, halved up to MAX_HALVINGS times. It is halved
 * further while rows would have fewer than MIN_COLUMNS columns. */
#define MAX_HALVINGS 4
#define MIN_COLUMNS 16.0 /* of all ranks together */
/* Number of powers. A rank's width is proportional to a uniform random number
 * to the power p; each pattern draws its p from 0 .. N_POWERS - 1. */
#define N_POWERS 4
#define N_WARM_UP 2
#define MAX_ROUNDS 6
#define CALM_RATIO 1.25 /* largest p90 / p10 of a calm round */
/* Largest number of places in the regions. Exchanges use the places in turn, so
 * that a small exchange does not find its blocks in the cache. Odd, so that
 * forward and backward both visit all places. */
#define MAX_PLACES 7
#define PLACE_ALIGN 128 /* floats */
#define MAX_EXCHANGE_RANKS 1024
/* Size below which an exchange is cheap enough to run BENCH_MAX_ITERATIONS
 * times. */
#define MANY_BELOW_BYTES ((uint64_t)4 << 20)

/* Setup of the benchmark. All data that is sent lies in one region, all data
 * that is received in another. In each region the buffers of the ranks of this
 * process follow one another. */
struct exchange_rig {
    struct comm *comm; /* not owned, like options and sink */
    const struct bench_options *options;
    struct sample_sink *sink;
    struct sample_setting setting; /* setting of the samples */
    uint64_t n_floats;             /* size of each region in floats */
    void *d_send_region, *d_recv_region;
    /* Current pattern, and the width and buffers of each of its ranks. */
    struct alltoall alltoall;
    uint32_t dims[MAX_EXCHANGE_RANKS];
    void *d_send[MAX_EXCHANGE_RANKS], *d_recv[MAX_EXCHANGE_RANKS];
};

static int alloc_region(struct exchange_rig *rig, void **d_region,
                        struct err *err)
{
    if (device_alloc(rig->comm->device, d_region, rig->n_floats * sizeof(float),
                     err))
        return -1;
    return device_fill(rig->comm->device, *d_region, rig->n_floats,
                       PRECISION_FP32, 1, err);
}

static uint64_t region_bytes(const struct bench_options *options)
{
    return min_u64(options->memory_bytes / 2, MAX_REGION_BYTES);
}

/* Draws a pattern. One in N_POWERS patterns is even, the others are uneven to
 * different degrees. */
static void draw_pattern(struct exchange_rig *rig, uint64_t case_idx)
{
    const struct bench_options *options = rig->options;
    uint32_t n_ranks = rig->comm->n_ranks, batch = options->batch;
    bool is_small = case_idx % 4 == 3;
    double columns, sum = 0, weights[MAX_EXCHANGE_RANKS];
    struct rng rng;
    uint64_t power;
    bool is_empty = true;

    rng_init(&rng, options->seed, case_idx);
    columns = draw_log_uniform(&rng, is_small ? FLOAT_BYTES : SMALL_BYTES,
                               is_small ? SMALL_BYTES
                                        : (double)region_bytes(options)) /
              FLOAT_BYTES; /* columns at batch 1 */
    batch >>= rng_below(&rng, MAX_HALVINGS + 1);
    while (batch > 1 && columns / batch < MIN_COLUMNS)
        batch /= 2;
    batch = (uint32_t)max_u64(batch, 1);
    power = rng_below(&rng, N_POWERS);
    for (uint32_t r = 0; r < n_ranks; r++) {
        double u = rng_uniform(&rng);

        weights[r] = 1;
        for (uint64_t i = 0; i < power; i++)
            weights[r] *= u;
        sum += weights[r];
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        rig->dims[r] = (uint32_t)(columns / batch * weights[r] / sum);
        is_empty &= !rig->dims[r];
    }
    if (is_empty)
        rig->dims[rng_below(&rng, n_ranks)] = 1;
    rig->alltoall = (struct alltoall){.n_ranks = n_ranks,
                                      .batch = batch,
                                      .dims = rig->dims,
                                      .element_bytes = sizeof(float)};
}

/* Lays out the buffers from float `begin` of the regions on; returns the end of
 * the last one. */
static uint64_t lay_out(struct exchange_rig *rig, uint64_t begin)
{
    const struct alltoall *alltoall = &rig->alltoall;
    uint64_t sent = begin, received = begin;

    for (uint32_t r = 0; r < alltoall->n_ranks; r++) {
        if (!comm_is_here(rig->comm, r))
            continue;
        rig->d_send[r] = (float *)rig->d_send_region + sent;
        rig->d_recv[r] = (float *)rig->d_recv_region + received;
        sent += (uint64_t)alltoall->batch * alltoall->dims[r];
        received += alltoall_recv_elements(alltoall, r);
    }
    return max_u64(sent, received);
}

/* Lays out the buffers at one of the places that fit the regions. */
static void place_buffers(struct exchange_rig *rig, unsigned number)
{
    uint64_t n_used = (lay_out(rig, 0) / PLACE_ALIGN + 1) * PLACE_ALIGN;
    uint64_t n_places = min_u64(rig->n_floats / n_used, MAX_PLACES);

    if (n_places)
        lay_out(rig, number % n_places * n_used);
}

/* Times one exchange: forward in even runs, backward in odd ones. All processes
 * begin together. Copies are held back until all of them are queued. NCCL may
 * have to wait for work that is queued already, so its exchange is only
 * delayed. */
static int run_once(void *ctx, unsigned number, double *ms, struct err *err)
{
    struct exchange_rig *rig = ctx;
    struct device *device = rig->comm->device;
    uint64_t n_ranks = rig->alltoall.n_ranks;
    bool is_held =
        rig->comm->world->size == 1 && n_ranks * n_ranks < DEVICE_MAX_HELD;
    bool is_forward = number % 2 == 0;
    void **d_from = is_forward ? rig->d_send : rig->d_recv;
    void **d_to = is_forward ? rig->d_recv : rig->d_send;

    place_buffers(rig, number);
    if (device_wait(device, err) || world_barrier(rig->comm->world, err) ||
        (is_held ? device_hold(device, err) : device_delay(device, err)) ||
        device_mark(device, 0, err) ||
        alltoall_start(rig->comm, &rig->alltoall, !is_forward,
                       (const void *const *)d_from, d_to, err) ||
        comm_finish(rig->comm, err) || device_mark(device, 1, err) ||
        (is_held && device_release(device, err)))
        return -1;
    return device_elapsed(device, 0, 1, ms, err);
}

/* Measures a pattern. An exchange takes as long as its slowest process. It
 * needs the processors of all its ranks at once, so any other work there
 * disturbs it, and a disturbance only ever adds time. So the exchange is timed
 * in several rounds. The first calm round counts, or else the fastest one. All
 * processes see the same times and so make the same choice. */
static int measure_pattern(struct exchange_rig *rig, struct comm_sample *sample,
                           struct err *err)
{
    unsigned n = sample->total_bytes < MANY_BELOW_BYTES ? BENCH_MAX_ITERATIONS
                                                        : BENCH_MIN_ITERATIONS;
    struct laps laps = {run_once, rig, 1, N_WARM_UP, n, 0, rig->comm->world};
    struct timing time;

    sample->n_iterations = n;
    for (unsigned round = 0; round < MAX_ROUNDS; round++) {
        if (laps_time(&time, &laps, err))
            return -1;
        if (!round || time.median_ms < sample->time.median_ms)
            sample->time = time;
        if (time.p90_ms < CALM_RATIO * time.p10_ms) {
            sample->time = time;
            break;
        }
    }
    return 0;
}

/* Decides whether to stop, and whether a pattern is stored already. The first
 * process, which has the sink, knows the stored patterns and the time limit. An
 * interrupt of any process counts. */
static int decide(const struct exchange_rig *rig, struct bench_result *result,
                  bool *is_stored, const struct comm_sample *sample,
                  double begin_ms, struct err *err)
{
    const bool is_first = !rig->comm->world->rank;
    const struct sample_sink *sink = rig->sink;
    double said[] = {interrupt_requested(),
                     is_first && bench_is_late(rig->options, begin_ms),
                     is_first && sink->has_comm &&
                         sink->has_comm(sink->ctx, &rig->setting, sample)};

    if (world_largest(rig->comm->world, said, 3, err))
        return -1;
    result->interrupted = said[0] > 0;
    result->out_of_time = said[1] > 0;
    *is_stored = said[2] > 0;
    return 0;
}

static int run_patterns(struct exchange_rig *rig, struct bench_result *result,
                        struct err *err)
{
    const struct bench_options *options = rig->options;
    double begin_ms = clock_ms();

    while (!options->n_cases || result->n_cases < options->n_cases) {
        struct comm_sample sample;
        bool is_stored;

        draw_pattern(rig, options->first_case + result->n_cases);
        sample = alltoall_sample(rig->comm, &rig->alltoall);
        if (decide(rig, result, &is_stored, &sample, begin_ms, err))
            return -1;
        if (result->interrupted || result->out_of_time)
            break;
        if (!is_stored &&
            (measure_pattern(rig, &sample, err) ||
             (!rig->comm->world->rank &&
              sample_sink_put_comm(rig->sink, &rig->setting, &sample, err))))
            return -1;
        *(is_stored ? &result->n_resumed : &result->n_measured) += 1;
        progress_update(options->progress, ++result->n_cases);
    }
    return 0;
}

int bench_alltoall(struct bench_result *result, struct comm *comm,
                   const struct bench_options *options,
                   struct sample_sink *sink, struct err *err)
{
    struct exchange_rig rig = {.comm = comm, .options = options, .sink = sink};
    int rc;

    *result = (struct bench_result){.seed = options->seed};
    assert(comm->n_ranks > 1 && comm->n_ranks <= MAX_EXCHANGE_RANKS);
    rig.setting = bench_setting(comm->device, options);
    rig.n_floats = region_bytes(options) / sizeof(float);
    rc = alloc_region(&rig, &rig.d_send_region, err) ||
         alloc_region(&rig, &rig.d_recv_region, err) ||
         run_patterns(&rig, result, err);
    device_free(comm->device, rig.d_send_region);
    device_free(comm->device, rig.d_recv_region);
    return rc ? -1 : 0;
}
