/* SPDX-License-Identifier: MIT */
#include "microbench/laps.h"

#include "base/clock.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

#define N_WARM_UP 3
/* A case that is still unsteady after its iterations gets more, up to
 * BENCH_MAX_ITERATIONS or so long. */
#define EXTRA_MS 30.0
#define STEADY_SPREAD 0.01
#define N_PHASE_LAPS 5

double timing_spread(const double *ms, size_t n)
{
    double sorted[BENCH_MAX_ITERATIONS], median;

    memcpy(sorted, ms, n * sizeof(*ms));
    median = stats_median(sorted, n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = fabs(ms[i] - median);
    return median > 0 ? stats_median(sorted, n) / median : 0;
}

struct laps {
    double forward[BENCH_MAX_ITERATIONS], backward[BENCH_MAX_ITERATIONS],
        total[BENCH_MAX_ITERATIONS];
    unsigned n;
};

/* Kernels that have not run before may be loaded now, which waits for the
 * device: the first laps are not held back. */
static int run_lap(const struct course *course, unsigned number,
                   struct err *err)
{
    const struct lookup_batch *set = &course->sets[number % course->n_sets];
    struct device *device = course->device;

    if ((number >= N_WARM_UP && device_hold(device, err)) ||
        device_flush(device, err) || device_mark(device, 0, err) ||
        lookup_forward(course->lookup, set, course->d_out, err) ||
        device_mark(device, 1, err) || device_flush(device, err) ||
        device_mark(device, 2, err) ||
        lookup_backward(course->lookup, set, course->d_grad,
                        course->learning_rate, err) ||
        device_mark(device, 3, err))
        return -1;
    return device_release(device, err);
}

static int take_lap(const struct course *course, struct laps *laps,
                    struct err *err)
{
    double *forward = &laps->forward[laps->n];
    double *backward = &laps->backward[laps->n];
    double *total = &laps->total[laps->n];

    if (device_elapsed(course->device, 0, 1, forward, err) ||
        device_elapsed(course->device, 2, 3, backward, err) ||
        device_elapsed(course->device, 0, 3, total, err))
        return -1;
    if (!device_is_host(course->device))
        *total = *forward + *backward;
    laps->n++;
    return 0;
}

static bool is_enough(const struct laps *laps, unsigned n_min, double begin_ms)
{
    if (laps->n < n_min)
        return false;
    return laps->n == BENCH_MAX_ITERATIONS ||
           clock_ms() - begin_ms > EXTRA_MS ||
           timing_spread(laps->total, laps->n) < STEADY_SPREAD;
}

int laps_time(struct sample *sample, const struct course *course,
              unsigned n_min, struct err *err)
{
    struct laps laps = {.n = 0};
    unsigned number = 0;
    double begin_ms;

    while (number < N_WARM_UP)
        if (run_lap(course, number++, err))
            return -1;
    if (device_wait(course->device, err))
        return -1;
    begin_ms = clock_ms();
    while (!is_enough(&laps, n_min, begin_ms))
        if (run_lap(course, number++, err) || take_lap(course, &laps, err))
            return -1;
    sample->n_iterations = laps.n;
    sample->forward = timing_of(laps.forward, laps.n);
    sample->backward = timing_of(laps.backward, laps.n);
    sample->total = timing_of(laps.total, laps.n);
    return 0;
}

#define N_PHASES 3

/* Phase i lies between the marks 2 i and 2 i + 1. */
static int run_phases(const struct course *course, unsigned number,
                      struct err *err)
{
    static const enum lookup_phase phases[N_PHASES] = {
        LOOKUP_LINEARISE, LOOKUP_SORT, LOOKUP_UPDATE};
    const struct lookup_batch *set = &course->sets[number % course->n_sets];
    struct device *device = course->device;

    if (device_hold(device, err))
        return -1;
    for (unsigned i = 0; i < N_PHASES; i++)
        if (device_flush(device, err) || device_mark(device, 2 * i, err) ||
            lookup_backward_phases(course->lookup, phases[i], set,
                                   course->d_grad, course->learning_rate,
                                   err) ||
            device_mark(device, 2 * i + 1, err))
            return -1;
    return device_release(device, err);
}

int laps_time_phases(struct sample *sample, const struct course *course,
                     struct err *err)
{
    double ms[N_PHASES][N_PHASE_LAPS];

    for (unsigned n = 0; n < N_PHASE_LAPS; n++) {
        if (run_phases(course, n, err))
            return -1;
        for (unsigned i = 0; i < N_PHASES; i++)
            if (device_elapsed(course->device, 2 * i, 2 * i + 1, &ms[i][n],
                               err))
                return -1;
    }
    sample->linearise = timing_of(ms[0], N_PHASE_LAPS);
    sample->sort = timing_of(ms[1], N_PHASE_LAPS);
    sample->update = timing_of(ms[2], N_PHASE_LAPS);
    return 0;
}
