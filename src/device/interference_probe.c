/* SPDX-License-Identifier: MIT */
#include "device/interference_probe.h"

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
/* Samples per batch, on a CPU and on a GPU. The batch size does not matter for
 * a GPU's check, which is a series of short kernels at any batch size. */
#define CPU_BATCH 8192
#define CUDA_BATCH 1024
#define N_SETS 4
#define N_WARM_UP N_SETS /* makes timed steps warm, whatever ran before */
#define N_STEPS 7
#define N_FIRST_CHECKS 10
#define LEARNING_RATE 1e-6f
/* A check counts as disturbed if it takes this many times as long as the
 * fastest check. */
#define DISTURBED 1.25
#define PAUSE_MS 100
#define PATIENCE_MS 2000.0
#define PATIENCE_FRAC 0.1

struct interference_probe {
    struct device *device; /* not owned */
    uint32_t batch;
    struct lookup *lookup;
    /* All device memory of the probe: the weights, then the arrays below. */
    void *d_block;
    float *d_grad, *d_out;
    struct lookup_batch sets[N_SETS];
    double best_ms;
    double taught_ms; /* best time that the sink knows; 0 if none */
    double last_ms;   /* time of the latest check */
    double opened_ms, waited_ms;
    double end_ms; /* time at which patience runs out; INFINITY: never */
};

/* Draws the index sets of the check: one lookup per sample, uniform over the
 * rows. */
static int draw_sets(struct interference_probe *interference,
                     uint64_t *d_offsets, struct err *err)
{
    const struct stream stream = {
        .n_rows = N_ROWS, .batch = interference->batch, .pooling_factor = 1};
    uint32_t *d_indices = (uint32_t *)(d_offsets + interference->batch + 1);

    for (unsigned set = 0; set < N_SETS;
         set++, d_indices += interference->batch) {
        if (stream_draw(interference->device, &stream, 1, set, d_indices,
                        d_offsets, err))
            return -1;
        interference->sets[set] = (struct lookup_batch){
            .d_indices = d_indices,
            .d_offsets = d_offsets,
            .n_lookups = interference->batch,
        };
    }
    return 0;
}

static int open_memory(struct interference_probe *interference, struct err *err)
{
    size_t n_weights = (size_t)N_ROWS * DIM, batch = interference->batch;
    size_t n_floats = n_weights + 2 * batch * DIM;

    if (device_alloc(interference->device, &interference->d_block,
                     n_floats * sizeof(float) + (batch + 1) * sizeof(uint64_t) +
                         N_SETS * batch * sizeof(uint32_t),
                     err) ||
        device_fill(interference->device, interference->d_block, n_floats,
                    PRECISION_FP32, 1, err))
        return -1;
    interference->d_grad = (float *)interference->d_block + n_weights;
    interference->d_out = interference->d_grad + batch * DIM;
    return draw_sets(interference,
                     (uint64_t *)(interference->d_out + batch * DIM), err);
}

static int open_lookup(struct interference_probe *interference, struct err *err)
{
    const struct lookup_table table = {.d_weight = interference->d_block,
                                       .n_rows = N_ROWS,
                                       .dim = DIM,
                                       .precision = PRECISION_FP32};
    const struct lookup_spec spec = {.tables = &table,
                                     .n_tables = 1,
                                     .batch = interference->batch,
                                     .max_lookups = interference->batch};

    return lookup_open(&interference->lookup, interference->device, &spec, err);
}

static int step(struct interference_probe *interference, unsigned number,
                double *ms, struct err *err)
{
    const struct lookup_batch *set = &interference->sets[number % N_SETS];

    /* Warm-up steps are not held (device_hold). They may have to load kernels,
     * and loading a kernel waits for the GPU. */
    if ((number >= N_WARM_UP && device_hold(interference->device, err)) ||
        device_mark(interference->device, 0, err) ||
        lookup_forward(interference->lookup, set, interference->d_out, err) ||
        lookup_backward(interference->lookup, LOOKUP_BACKWARD, set,
                        interference->d_grad, LEARNING_RATE, err) ||
        device_mark(interference->device, 1, err) ||
        device_release(interference->device, err))
        return -1;
    return device_elapsed(interference->device, 0, 1, ms, err);
}

/* Runs one check: measures some steps and takes their median time. */
static int check(struct interference_probe *interference, struct err *err)
{
    double ms[N_WARM_UP + N_STEPS];

    for (unsigned i = 0; i < N_WARM_UP + N_STEPS; i++)
        if (step(interference, i, &ms[i], err))
            return -1;
    interference->last_ms = stats_median(ms + N_WARM_UP, N_STEPS);
    interference->best_ms = fmin(interference->best_ms, interference->last_ms);
    return 0;
}

int interference_probe_open(struct interference_probe **out,
                            struct device *device, struct err *err)
{
    struct interference_probe *interference =
        mem_alloc(1, sizeof(*interference));
    int rc;

    interference->device = device;
    interference->batch = device_is_host(device) ? CPU_BATCH : CUDA_BATCH;
    interference->opened_ms = clock_ms();
    interference->best_ms = interference->end_ms = INFINITY;
    rc = open_memory(interference, err) || open_lookup(interference, err) ? -1
                                                                          : 0;
    for (unsigned i = 0; !rc && i < N_FIRST_CHECKS; i++)
        rc = check(interference, err);
    if (rc)
        interference_probe_close(interference);
    else
        *out = interference;
    return rc;
}

void interference_probe_close(struct interference_probe *interference)
{
    if (!interference)
        return;
    lookup_close(interference->lookup);
    device_free(interference->device, interference->d_block);
    mem_free(interference);
}

int interference_probe_learn(struct interference_probe *interference,
                             const struct sample_sink *sink,
                             const struct sample_setting *setting,
                             struct err *err)
{
    if (!sink->find_interference_probe)
        return 0;
    if (sink->find_interference_probe(sink->ctx, setting,
                                      &interference->taught_ms, err))
        return -1;
    if (interference->taught_ms > 0)
        interference->best_ms =
            fmin(interference->best_ms, interference->taught_ms);
    return 0;
}

int interference_probe_teach(struct interference_probe *interference,
                             const struct sample_sink *sink,
                             const struct sample_setting *setting,
                             struct err *err)
{
    if (!sink->put_interference_probe ||
        (interference->taught_ms > 0 &&
         interference->best_ms >= interference->taught_ms))
        return 0;
    interference->taught_ms = interference->best_ms;
    return sink->put_interference_probe(sink->ctx, setting,
                                        interference->best_ms, err);
}

void interference_probe_limit(struct interference_probe *interference,
                              double end_ms)
{
    interference->end_ms = end_ms;
}

/* Returns true if no more measurements are to be repeated. */
static bool is_impatient(const struct interference_probe *interference)
{
    const double now_ms = clock_ms();

    return interference->waited_ms >=
               PATIENCE_MS +
                   PATIENCE_FRAC * (now_ms - interference->opened_ms) ||
           now_ms >= interference->end_ms || interrupt_requested();
}

int interference_probe_judge(struct interference_probe *interference,
                             double begin_ms,
                             enum interference_verdict *verdict,
                             struct err *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    const double before_ms = interference->last_ms;

    if (check(interference, err))
        return -1;
    *verdict = PROBE_QUIET;
    if (fmax(interference->last_ms, before_ms) <
        DISTURBED * interference->best_ms)
        return 0;
    *verdict = PROBE_DISTURBED;
    if (is_impatient(interference))
        return 0;
    nanosleep(&pause, NULL);
    interference->waited_ms += clock_ms() - begin_ms;
    *verdict = PROBE_AGAIN;
    return 0;
}
