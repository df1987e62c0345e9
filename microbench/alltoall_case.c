/* SPDX-License-Identifier: MIT */
#include "microbench/alltoall_case.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "device/alltoall.h"
#include "device/repetitions.h"
#include "microbench/draws.h"
#include "microbench/sampler.h"
#include "microbench/setup.h"

#include <assert.h>
#include <math.h>

/*
 * Benchmark of the all-to-all between ranks.
 *
 * A case is a pattern of data that the ranks exchange. Patterns differ in size,
 * over eight powers of ten, and in how uneven the widths of the ranks are.
 * Pattern i is the same in every process. All other values on which the
 * processes have to agree are exchanged between them.
 */

#define FLOAT_BYTES 4.0
/* bytes of all ranks together; one pattern in four is smaller */
#define SMALL_BYTES 65536.0
/* Largest number of halvings of the batch. A pattern's batch is the batch of
 * the options after some halvings. It is halved further while rows would have
 * fewer than MIN_COLUMNS columns. */
#define MAX_HALVINGS 4
#define MIN_COLUMNS 16.0 /* columns of all ranks together */
/* Number of exponents. A rank's width is proportional to a uniform random
 * number to the power p. Each pattern draws its exponent p from 0 .. N_POWERS -
 * 1. */
#define N_POWERS 4
#define N_WARM_UP 2
#define MAX_ROUNDS 6
/* a round is calm if its p90 / p10 is at most this ratio */
#define CALM_RATIO 1.25
/* Largest number of places at which buffers can lie in a region. Exchanges use
 * the places in turn, so that a small exchange does not find its blocks in the
 * cache. The number is odd, so that forward and backward both use all
 * places. */
#define MAX_PLACES 7
#define PLACE_ALIGN 128 /* alignment in floats */
#define MAX_EXCHANGE_RANKS 1024
/* Size in bytes below which an exchange is cheap enough to run
 * BENCH_MAX_ITERATIONS times. */
#define MANY_BELOW_BYTES ((uint64_t)4 << 20)

/* Setup of the benchmark. All sent data lie in one memory region, and all
 * received data in another region. In each region, the buffers of the ranks of
 * this process follow one another. */
struct exchange_setup {
    struct comm *comm; /* not owned, like `options` and `sink` */
    const struct bench_options *options;
    struct sample_sink *sink;
    /* setting under which the samples are stored */
    struct sample_setting setting;
    uint64_t n_floats; /* size of each region in floats */
    void *d_send_region, *d_recv_region;
    /* The all-to-all of the current pattern, and the width and buffers of each
     * rank. */
    struct alltoall alltoall;
    uint32_t dims[MAX_EXCHANGE_RANKS];
    void *d_send[MAX_EXCHANGE_RANKS], *d_recv[MAX_EXCHANGE_RANKS];
};

static int alloc_region(struct exchange_setup *setup, void **d_region,
                        struct err *err)
{
    if (device_alloc(setup->comm->device, d_region,
                     setup->n_floats * sizeof(float), err))
        return -1;
    return device_fill(setup->comm->device, *d_region, setup->n_floats,
                       PRECISION_FP32, 1, err);
}

/* Draws the bytes of all ranks together. Without a least size, one pattern in
 * four is small. */
static double draw_bytes(struct rng *rng, const struct bench_options *options,
                         uint64_t case_idx)
{
    const double max = (double)bench_max_exchange(options);

    if (options->min_bytes)
        return draw_log_uniform(rng, (double)options->min_bytes, max);
    if (case_idx % 4 == 3 || max < SMALL_BYTES)
        return draw_log_uniform(rng, FLOAT_BYTES, fmin(SMALL_BYTES, max));
    return draw_log_uniform(rng, SMALL_BYTES, max);
}

/* Draws a pattern. In one of N_POWERS patterns all ranks have equal widths. In
 * the other patterns the widths are uneven to different degrees. */
static void draw_pattern(struct exchange_setup *setup, uint64_t case_idx)
{
    const struct bench_options *options = setup->options;
    uint32_t n_ranks = setup->comm->n_ranks, batch = options->batch;
    double columns, sum = 0, weights[MAX_EXCHANGE_RANKS];
    struct rng rng;
    uint64_t power;
    bool is_empty = true;

    rng_init(&rng, options->seed, case_idx);
    /* number of columns if the batch is 1 */
    columns = draw_bytes(&rng, options, case_idx) / FLOAT_BYTES;
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
        setup->dims[r] = (uint32_t)(columns / batch * weights[r] / sum);
        is_empty &= !setup->dims[r];
    }
    if (is_empty)
        setup->dims[rng_below(&rng, n_ranks)] = 1;
    setup->alltoall = (struct alltoall){.n_ranks = n_ranks,
                                        .batch = batch,
                                        .dims = setup->dims,
                                        .element_bytes = sizeof(float)};
}

/* Lays out the buffers of all ranks, starting at float number `begin` of the
 * regions. Returns the end of the last buffer. */
static uint64_t lay_out(struct exchange_setup *setup, uint64_t begin)
{
    const struct alltoall *alltoall = &setup->alltoall;
    uint64_t sent = begin, received = begin;

    for (uint32_t r = 0; r < alltoall->n_ranks; r++) {
        if (!comm_is_here(setup->comm, r))
            continue;
        setup->d_send[r] = (float *)setup->d_send_region + sent;
        setup->d_recv[r] = (float *)setup->d_recv_region + received;
        sent += (uint64_t)alltoall->batch * alltoall->dims[r];
        received += alltoall_recv_elements(alltoall, r);
    }
    return max_u64(sent, received);
}

/* Lays out the buffers of all ranks at one of the places that fit into the
 * regions. */
static void place_buffers(struct exchange_setup *setup, unsigned number)
{
    uint64_t n_used = (lay_out(setup, 0) / PLACE_ALIGN + 1) * PLACE_ALIGN;
    uint64_t n_places = min_u64(setup->n_floats / n_used, MAX_PLACES);

    if (n_places)
        lay_out(setup, number % n_places * n_used);
}

/* Times one exchange: forward in runs with an even number, backward in runs
 * with an odd number. All processes begin together. Copies are held back until
 * all of them are queued. An NCCL exchange is only delayed instead, because
 * NCCL may have to wait for work that is already queued. */
static int run_once(void *ctx, unsigned number, double *ms, struct err *err)
{
    struct exchange_setup *setup = ctx;
    struct device *device = setup->comm->device;
    uint64_t n_ranks = setup->alltoall.n_ranks;
    bool is_held =
        setup->comm->world->size == 1 && n_ranks * n_ranks < DEVICE_MAX_HELD;
    bool is_forward = number % 2 == 0;
    void **d_from = is_forward ? setup->d_send : setup->d_recv;
    void **d_to = is_forward ? setup->d_recv : setup->d_send;

    place_buffers(setup, number);
    if (device_wait(device, err) || world_barrier(setup->comm->world, err) ||
        (is_held ? device_hold(device, err) : device_delay(device, err)) ||
        device_mark(device, 0, err) ||
        alltoall_start(setup->comm, &setup->alltoall, !is_forward,
                       (const void *const *)d_from, d_to, err) ||
        comm_finish(setup->comm, err) || device_mark(device, 1, err) ||
        (is_held && device_release(device, err)))
        return -1;
    return device_elapsed(device, 0, 1, ms, err);
}

/*
 * Measures a pattern. The time of an exchange is that of the slowest process.
 *
 * An exchange needs the processors of all its ranks at once, so any other load
 * on these processors disturbs it. A disturbance can only make it slower. So
 * the exchange is timed in several rounds. The result is the first calm round,
 * or the fastest round if no round is calm. All processes see the same times
 * and so choose the same round.
 */
static int measure_pattern(struct exchange_setup *setup,
                           struct comm_sample *sample, struct err *err)
{
    unsigned n = sample->total_bytes < MANY_BELOW_BYTES ? BENCH_MAX_ITERATIONS
                                                        : BENCH_MIN_ITERATIONS;
    struct repetitions repetitions = {
        run_once, setup, 1, N_WARM_UP, n, 0, setup->comm->world};
    struct timing time;

    sample->n_iterations = n;
    for (unsigned round = 0; round < MAX_ROUNDS; round++) {
        if (repetitions_time(&time, &repetitions, err))
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

/* Decides for all processes whether to stop, and whether a pattern is stored
 * already. Only the first process has the sink, so it knows the stored patterns
 * and the time limit. An interrupt in any process stops all processes. */
static int decide(const struct exchange_setup *setup,
                  struct bench_result *result, bool *is_stored,
                  const struct comm_sample *sample, double begin_ms,
                  struct err *err)
{
    const bool is_first = !setup->comm->world->rank;
    const struct sample_sink *sink = setup->sink;
    double said[] = {interrupt_requested(),
                     is_first && bench_is_late(setup->options, begin_ms),
                     is_first && sink->has_comm &&
                         sink->has_comm(sink->ctx, &setup->setting, sample)};

    if (world_largest(setup->comm->world, said, 3, err))
        return -1;
    result->interrupted = said[0] > 0;
    result->out_of_time = said[1] > 0;
    *is_stored = said[2] > 0;
    return 0;
}

static int run_patterns(struct exchange_setup *setup,
                        struct bench_result *result, struct err *err)
{
    const struct bench_options *options = setup->options;
    double begin_ms = clock_ms();

    while (!options->n_cases || result->n_cases < options->n_cases) {
        struct comm_sample sample;
        bool is_stored;

        draw_pattern(setup, options->first_case + result->n_cases);
        sample = alltoall_sample(setup->comm, &setup->alltoall, 1);
        if (decide(setup, result, &is_stored, &sample, begin_ms, err))
            return -1;
        if (result->interrupted || result->out_of_time)
            break;
        if (!is_stored && (measure_pattern(setup, &sample, err) ||
                           (!setup->comm->world->rank &&
                            sample_sink_put_comm(setup->sink, &setup->setting,
                                                 &sample, err))))
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
    struct exchange_setup setup = {
        .comm = comm, .options = options, .sink = sink};
    int rc;

    *result = (struct bench_result){.seed = options->seed};
    assert(comm->n_ranks > 1 && comm->n_ranks <= MAX_EXCHANGE_RANKS);
    setup.setting = bench_setting(comm->device, options);
    setup.n_floats = bench_max_exchange(options) / sizeof(float);
    rc = alloc_region(&setup, &setup.d_send_region, err) ||
         alloc_region(&setup, &setup.d_recv_region, err) ||
         run_patterns(&setup, result, err);
    device_free(comm->device, setup.d_send_region);
    device_free(comm->device, setup.d_recv_region);
    return rc ? -1 : 0;
}
