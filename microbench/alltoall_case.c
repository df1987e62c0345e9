/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "device/alltoall.h"
#include "microbench/rig.h"

#include <assert.h>
#include <inttypes.h>

/*
 * All-to-all between ranks of this process: real copies, no wire. Patterns
 * differ in size (mean width of a rank and batch) and in how uneven the widths
 * are. What is sent and what is received each lie in one region, rank behind
 * rank.
 */

#define MIN_WIDTH 8.0
#define MAX_WIDTH 1024.0
/* Batches are the given one, halved up to so many times. */
#define MAX_HALVINGS 4
#define N_WARM_UP 2
/* Exchanges take turns between so many places in the regions, so that a small
 * one does not find its blocks in the cache. Odd, so that forward and backward
 * visit all of them. */
#define MAX_PLACES 7
#define MAX_EXCHANGE_RANKS 1024

struct exchange {
    struct device *device; /* not owned */
    uint32_t n_ranks;
    double max_width;  /* mean over the ranks, bounded by the memory */
    uint32_t *dims;    /* [n_ranks] */
    uint64_t n_floats; /* of each region */
    float *d_send_region, *d_recv_region;
    float **d_send, **d_recv; /* [n_ranks], into the regions */
};

static void exchange_close(struct exchange *exchange)
{
    device_free(exchange->device, exchange->d_send_region);
    device_free(exchange->device, exchange->d_recv_region);
    mem_free(exchange->dims);
    mem_free(exchange->d_send);
    mem_free(exchange->d_recv);
}

static int alloc_region(struct exchange *exchange, float **d_region,
                        struct err *err)
{
    uint64_t n = exchange->n_floats;
    void *d_ptr;

    if (device_alloc(exchange->device, &d_ptr, n * sizeof(float), err))
        return -1;
    *d_region = d_ptr;
    return device_fill(exchange->device, d_ptr, n, PRECISION_FP32, 1, err);
}

/* The largest mean width of a rank that the memory has room for: a rank has at
 * most twice the mean, in each of two regions. */
static double find_max_width(uint32_t n_ranks,
                             const struct bench_options *options)
{
    double width = (double)options->memory_bytes /
                   (4 * sizeof(float) * (double)options->batch * n_ranks);

    return width < MAX_WIDTH ? width : MAX_WIDTH;
}

static int exchange_open(struct exchange *exchange, struct device *device,
                         uint32_t n_ranks, const struct bench_options *options,
                         struct err *err)
{
    double max_width = find_max_width(n_ranks, options);

    *exchange = (struct exchange){
        .device = device,
        .n_ranks = n_ranks,
        .max_width = max_width,
        .n_floats =
            (uint64_t)options->batch * n_ranks * (uint64_t)(2 * max_width + 8),
    };
    exchange->dims = mem_alloc(n_ranks, sizeof(*exchange->dims));
    exchange->d_send = mem_alloc(n_ranks, sizeof(*exchange->d_send));
    exchange->d_recv = mem_alloc(n_ranks, sizeof(*exchange->d_recv));
    if (alloc_region(exchange, &exchange->d_send_region, err) ||
        alloc_region(exchange, &exchange->d_recv_region, err)) {
        exchange_close(exchange);
        return -1;
    }
    return 0;
}

/* Widths are multiples of 4. */
static void draw_pattern(struct exchange *exchange, struct alltoall *alltoall,
                         uint32_t batch, struct rng *rng)
{
    double width = draw_log_uniform(rng, MIN_WIDTH, exchange->max_width);
    double uneven = rng_uniform(rng);

    for (uint32_t r = 0; r < exchange->n_ranks; r++) {
        double own = width * (1 + uneven * (2 * rng_uniform(rng) - 1));

        exchange->dims[r] = 4 * (uint32_t)(1 + own / 4);
    }
    batch >>= rng_below(rng, MAX_HALVINGS + 1);
    *alltoall = (struct alltoall){.n_ranks = exchange->n_ranks,
                                  .batch = batch ? batch : 1,
                                  .dims = exchange->dims};
}

/* Lays the buffers out, at one of the places where there is room. */
static void place_buffers(struct exchange *exchange,
                          const struct alltoall *alltoall, unsigned number)
{
    uint64_t sent = 0, received = 0, n_used = 0, n_places;

    for (uint32_t r = 0; r < exchange->n_ranks; r++)
        n_used += (uint64_t)alltoall->batch * exchange->dims[r];
    assert(n_used);
    n_places = exchange->n_floats / n_used;
    if (n_places > MAX_PLACES)
        n_places = MAX_PLACES;
    sent = received = number % n_places * n_used;
    for (uint32_t r = 0; r < exchange->n_ranks; r++) {
        exchange->d_send[r] = exchange->d_send_region + sent;
        exchange->d_recv[r] = exchange->d_recv_region + received;
        sent += (uint64_t)alltoall->batch * exchange->dims[r];
        received += alltoall_recv_floats(alltoall, r);
    }
}

/* The largest max(sent, received) of a rank. */
static uint64_t max_bytes(const struct alltoall *alltoall)
{
    uint64_t most = 0;

    for (uint32_t r = 0; r < alltoall->n_ranks; r++) {
        uint64_t sent = (uint64_t)alltoall->batch * alltoall->dims[r];
        uint64_t received = alltoall_recv_floats(alltoall, r);

        most = sent > most ? sent : most;
        most = received > most ? received : most;
    }
    return most * sizeof(float);
}

/* Forward in even runs, backward in odd ones. */
static int run_once(struct exchange *exchange, const struct alltoall *alltoall,
                    unsigned number, uint64_t *n_bytes, double *ms,
                    struct err *err)
{
    float **d_from = number % 2 ? exchange->d_recv : exchange->d_send;
    float **d_to = number % 2 ? exchange->d_send : exchange->d_recv;

    place_buffers(exchange, alltoall, number);
    if (device_mark(exchange->device, 0, err))
        return -1;
    if ((number % 2 ? alltoall_backward : alltoall_forward)(
            exchange->device, alltoall, (const float *const *)d_from, d_to,
            n_bytes, err))
        return -1;
    if (device_mark(exchange->device, 1, err))
        return -1;
    return device_elapsed(exchange->device, 0, 1, ms, err);
}

static int measure_pattern(struct exchange *exchange,
                           const struct alltoall *alltoall, unsigned n,
                           struct comm_sample *sample, struct err *err)
{
    double ms[BENCH_MAX_ITERATIONS], unused;

    for (unsigned i = 0; i < N_WARM_UP; i++)
        if (run_once(exchange, alltoall, i, &sample->total_bytes, &unused, err))
            return -1;
    for (unsigned i = 0; i < n; i++)
        if (run_once(exchange, alltoall, i, &sample->total_bytes, &ms[i], err))
            return -1;
    sample->kind = "copy";
    sample->n_ranks = alltoall->n_ranks;
    sample->max_bytes = max_bytes(alltoall);
    sample->n_iterations = n;
    sample->time = timing_of(ms, n);
    return 0;
}

static int run_patterns(struct exchange *exchange, struct bench_result *result,
                        const struct bench_options *options,
                        const struct sample_setting *setting,
                        struct sample_sink *sink, struct err *err)
{
    double begin_ms = clock_ms();

    while (result->n_cases < options->n_cases) {
        uint64_t case_idx = options->first_case + result->n_cases;
        struct comm_sample sample = {0};
        struct alltoall alltoall;
        struct rng rng;

        rng_init(&rng, options->seed, case_idx);
        draw_pattern(exchange, &alltoall, options->batch, &rng);
        if (measure_pattern(exchange, &alltoall, options->n_iterations, &sample,
                            err) ||
            sink->put_comm(sink->ctx, setting, &sample, err))
            return -1;
        result->n_measured++;
        result->n_cases++;
        if (options->progress)
            options->progress(options->progress_ctx, result->n_cases,
                              options->n_cases);
        result->interrupted = interrupt_requested();
        result->out_of_time =
            options->time_limit_s > 0 &&
            clock_ms() - begin_ms > options->time_limit_s * 1e3 &&
            result->n_cases < options->n_cases;
        if (result->interrupted || result->out_of_time)
            break;
    }
    return 0;
}

int bench_alltoall(struct bench_result *result, struct device *device,
                   uint32_t n_ranks, const struct bench_options *options,
                   struct sample_sink *sink, struct err *err)
{
    struct sample_setting setting = bench_setting(device, options);
    struct exchange exchange;
    int rc;

    *result = (struct bench_result){.seed = options->seed};
    if (bench_check_options(options, err))
        return -1;
    if (n_ranks < 2 || n_ranks > MAX_EXCHANGE_RANKS)
        return err_set(err, ERR_USAGE,
                       "an exchange has 2 to %d ranks, not %" PRIu32,
                       MAX_EXCHANGE_RANKS, n_ranks);
    if (find_max_width(n_ranks, options) <= MIN_WIDTH)
        return err_set(err, ERR_USAGE,
                       "the memory for tables is too small for an exchange of "
                       "%" PRIu32 " ranks at batch %" PRIu32,
                       n_ranks, options->batch);
    if (exchange_open(&exchange, device, n_ranks, options, err))
        return -1;
    rc = run_patterns(&exchange, result, options, &setting, sink, err);
    exchange_close(&exchange);
    return rc;
}
