/* SPDX-License-Identifier: MIT */
#include "device/repetitions.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

#define EXTRA_MS 30.0
#define STEADY_SPREAD 0.01

/* Returns the spread of ms[n]: the median of |x - median|, divided by the
 * median. */
static double spread_of(const double *ms, size_t n)
{
    double *sorted = mem_alloc(n, sizeof *sorted), median, spread = 0;

    memcpy(sorted, ms, n * sizeof *ms);
    median = stats_median(sorted, n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = fabs(ms[i] - median);
    if (median > 0)
        spread = stats_median(sorted, n) / median;
    mem_free(sorted);
    return spread;
}

/* Returns true if n timed repetitions are enough. ms[n]: times of the last part
 * in these repetitions. begin_ms: time at which the first of them began. */
static bool is_enough(const struct repetitions *repetitions, unsigned n,
                      const double *ms, double begin_ms)
{
    if (n < repetitions->n)
        return false;
    return n >= repetitions->n_most || clock_ms() - begin_ms > EXTRA_MS ||
           spread_of(ms, n) < STEADY_SPREAD;
}

int repetitions_time(struct timing *timings, struct repetitions *repetitions,
                     struct err *err)
{
    const unsigned n_parts = repetitions->n_parts;
    const unsigned n_most =
        (unsigned)max_u64(repetitions->n_most, repetitions->n);
    double *ms = mem_alloc(n_parts * n_most, sizeof *ms), *last;
    double repetition[REPETITION_MAX_PARTS], begin_ms;
    unsigned number = 0, n = 0;
    int rc = -1;

    last = ms + (n_parts - 1) * n_most;
    while (number < repetitions->n_warm_up)
        if (repetitions->once(repetitions->ctx, number++, repetition, err))
            goto out;
    begin_ms = clock_ms();
    for (; !is_enough(repetitions, n, last, begin_ms); n++) {
        if (repetitions->once(repetitions->ctx, number++, repetition, err))
            goto out;
        for (unsigned k = 0; k < n_parts; k++)
            ms[k * n_most + n] = repetition[k];
    }
    if (repetitions->world &&
        world_largest(repetitions->world, ms, n_parts * n_most, err))
        goto out;
    for (unsigned k = 0; k < n_parts; k++)
        timings[k] = timing_of(ms + k * n_most, n);
    repetitions->n = n;
    rc = 0;
out:
    mem_free(ms);
    return rc;
}

int repetitions_time_quietly(struct timing *timings,
                             struct repetitions *repetitions,
                             struct device *device,
                             struct interference_probe *interference,
                             struct repetition_conditions *conditions,
                             struct err *err)
{
    enum interference_verdict verdict = PROBE_QUIET;
    const unsigned n = repetitions->n;

    do {
        double begin_ms = clock_ms();

        repetitions->n = n;
        device_health(device, &conditions->before);
        if (repetitions_time(timings, repetitions, err))
            return -1;
        device_health(device, &conditions->after);
        if (interference &&
            interference_probe_judge(interference, begin_ms, &verdict, err))
            return -1;
    } while (verdict == PROBE_AGAIN);
    conditions->is_disturbed =
        verdict == PROBE_DISTURBED ||
        device_was_throttled(device, &conditions->before, &conditions->after);
    return 0;
}
