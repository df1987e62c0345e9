/* SPDX-License-Identifier: MIT */
#include "device/canary.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "base/stats.h"
#include "device/lookup.h"
#include "device/stream.h"

#include <math.h>
#include <time.h>

#define N_ROWS 200000
#define DIM 64
/* Samples per batch. A GPU executes a series of short kernels at any batch
 * size. */
#define CPU_BATCH 8192
#define CUDA_BATCH 1024
#define N_SETS 4
#define N_WARM_UP N_SETS /* timed steps are warm, whatever ran before */
#define N_STEPS 7
#define N_FIRST_CHECKS 10
#define LEARNING_RATE 1e-6f
/* A check is disturbed if it takes this many times as long as the best one. */
#define DISTURBED 1.25
#define PAUSE_MS 100
#define PATIENCE_MS 2000.0
#define PATIENCE_FRAC 0.5

struct canary {
    struct device *device; /* not owned */
    uint32_t batch;
    struct lookup *lookup;
    void *d_block; /* All device memory: the weights, then the arrays below. */
    float *d_grad, *d_out;
    struct lookup_batch sets[N_SETS];
    double best_ms;
    double taught_ms; /* best time that the sink has; 0: none */
    double last_ms;   /* time of the check before the measurement */
    double opened_ms, waited_ms;
};

/* Draws the index sets: one lookup per sample, uniform over the rows. */
static int draw_sets(struct canary *canary, uint64_t *d_offsets,
                     struct err *err)
{
    const struct stream stream = {
        .n_rows = N_ROWS, .batch = canary->batch, .pooling_factor = 1};
    uint32_t *d_indices = (uint32_t *)(d_offsets + canary->batch + 1);

    for (unsigned set = 0; set < N_SETS; set++, d_indices += canary->batch) {
        if (stream_draw(canary->device, &stream, 1, set, d_indices, d_offsets,
                        err))
            return -1;
        canary->sets[set] = (struct lookup_batch){
            .d_indices = d_indices,
            .d_offsets = d_offsets,
            .n_lookups = canary->batch,
        };
    }
    return 0;
}

static int open_memory(struct canary *canary, struct err *err)
{
    size_t n_weights = (size_t)N_ROWS * DIM, batch = canary->batch;
    size_t n_floats = n_weights + 2 * batch * DIM;

    if (device_alloc(canary->device, &canary->d_block,
                     n_floats * sizeof(float) + (batch + 1) * sizeof(uint64_t) +
                         N_SETS * batch * sizeof(uint32_t),
                     err) ||
        device_fill(canary->device, canary->d_block, n_floats, PRECISION_FP32,
                    1, err))
        return -1;
    canary->d_grad = (float *)canary->d_block + n_weights;
    canary->d_out = canary->d_grad + batch * DIM;
    return draw_sets(canary, (uint64_t *)(canary->d_out + batch * DIM), err);
}

static int open_lookup(struct canary *canary, struct err *err)
{
    const struct lookup_table table = {.d_weight = canary->d_block,
                                       .n_rows = N_ROWS,
                                       .dim = DIM,
                                       .precision = PRECISION_FP32};
    const struct lookup_spec spec = {.tables = &table,
                                     .n_tables = 1,
                                     .batch = canary->batch,
                                     .max_lookups = canary->batch};

    return lookup_open(&canary->lookup, canary->device, &spec, err);
}

static int step(struct canary *canary, unsigned number, double *ms,
                struct err *err)
{
    const struct lookup_batch *set = &canary->sets[number % N_SETS];

    /* Warm-up steps are not held: they may have to load kernels, and loading
     * waits for the device. */
    if ((number >= N_WARM_UP && device_hold(canary->device, err)) ||
        device_mark(canary->device, 0, err) ||
        lookup_forward(canary->lookup, set, canary->d_out, err) ||
        lookup_backward(canary->lookup, LOOKUP_BACKWARD, set, canary->d_grad,
                        LEARNING_RATE, err) ||
        device_mark(canary->device, 1, err) ||
        device_release(canary->device, err))
        return -1;
    return device_elapsed(canary->device, 0, 1, ms, err);
}

/* Measures some steps; their median is the time of the check. */
static int check(struct canary *canary, struct err *err)
{
    double ms[N_WARM_UP + N_STEPS];

    for (unsigned i = 0; i < N_WARM_UP + N_STEPS; i++)
        if (step(canary, i, &ms[i], err))
            return -1;
    canary->last_ms = stats_median(ms + N_WARM_UP, N_STEPS);
    canary->best_ms = fmin(canary->best_ms, canary->last_ms);
    return 0;
}

int canary_open(struct canary **out, struct device *device, struct err *err)
{
    struct canary *canary = mem_alloc(1, sizeof(*canary));
    int rc;

    canary->device = device;
    canary->batch = device_is_host(device) ? CPU_BATCH : CUDA_BATCH;
    canary->opened_ms = clock_ms();
    canary->best_ms = INFINITY;
    rc = open_memory(canary, err) || open_lookup(canary, err) ? -1 : 0;
    for (unsigned i = 0; !rc && i < N_FIRST_CHECKS; i++)
        rc = check(canary, err);
    if (rc)
        canary_close(canary);
    else
        *out = canary;
    return rc;
}

void canary_close(struct canary *canary)
{
    if (!canary)
        return;
    lookup_close(canary->lookup);
    device_free(canary->device, canary->d_block);
    mem_free(canary);
}

int canary_learn(struct canary *canary, const struct sample_sink *sink,
                 const struct sample_setting *setting, struct err *err)
{
    if (!sink->find_canary)
        return 0;
    if (sink->find_canary(sink->ctx, setting, &canary->taught_ms, err))
        return -1;
    if (canary->taught_ms > 0)
        canary->best_ms = fmin(canary->best_ms, canary->taught_ms);
    return 0;
}

int canary_teach(struct canary *canary, const struct sample_sink *sink,
                 const struct sample_setting *setting, struct err *err)
{
    if (!sink->put_canary ||
        (canary->taught_ms > 0 && canary->best_ms >= canary->taught_ms))
        return 0;
    canary->taught_ms = canary->best_ms;
    return sink->put_canary(sink->ctx, setting, canary->best_ms, err);
}

int canary_judge(struct canary *canary, double begin_ms,
                 enum canary_verdict *verdict, struct err *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    const double before_ms = canary->last_ms;

    if (check(canary, err))
        return -1;
    *verdict = CANARY_QUIET;
    if (fmax(canary->last_ms, before_ms) < DISTURBED * canary->best_ms)
        return 0;
    *verdict = CANARY_DISTURBED;
    if (canary->waited_ms >=
            PATIENCE_MS + PATIENCE_FRAC * (clock_ms() - canary->opened_ms) ||
        interrupt_requested())
        return 0;
    nanosleep(&pause, NULL);
    canary->waited_ms += clock_ms() - begin_ms;
    *verdict = CANARY_AGAIN;
    return 0;
}
