/* SPDX-License-Identifier: MIT */
#include "device/laps.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

#define EXTRA_MS 30.0
#define STEADY_SPREAD 0.01

/* Returns the median of |x - median|, divided by the median. */
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

/* Returns true if n repetitions are enough. ms[n]: the times of their last
 * part. begin_ms: when the first of them began. */
static bool is_enough(const struct laps *laps, unsigned n, const double *ms,
                      double begin_ms)
{
    if (n < laps->n)
        return false;
    return n >= laps->n_most || clock_ms() - begin_ms > EXTRA_MS ||
           spread_of(ms, n) < STEADY_SPREAD;
}

int laps_time(struct timing *timings, struct laps *laps, struct err *err)
{
    const unsigned n_parts = laps->n_parts;
    const unsigned n_most = (unsigned)max_u64(laps->n_most, laps->n);
    double *ms = mem_alloc(n_parts * n_most, sizeof *ms), *last;
    double lap[LAPS_MAX_PARTS], begin_ms;
    unsigned number = 0, n = 0;
    int rc = -1;

    last = ms + (n_parts - 1) * n_most;
    while (number < laps->n_warm_up)
        if (laps->once(laps->ctx, number++, lap, err))
            goto out;
    begin_ms = clock_ms();
    for (; !is_enough(laps, n, last, begin_ms); n++) {
        if (laps->once(laps->ctx, number++, lap, err))
            goto out;
        for (unsigned k = 0; k < n_parts; k++)
            ms[k * n_most + n] = lap[k];
    }
    if (laps->world && world_largest(laps->world, ms, n_parts * n_most, err))
        goto out;
    for (unsigned k = 0; k < n_parts; k++)
        timings[k] = timing_of(ms + k * n_most, n);
    laps->n = n;
    rc = 0;
out:
    mem_free(ms);
    return rc;
}

int laps_time_quietly(struct timing *timings, struct laps *laps,
                      struct device *device, struct canary *canary,
                      struct lap_conditions *conditions, struct err *err)
{
    enum canary_verdict verdict = CANARY_QUIET;
    const unsigned n = laps->n;

    do {
        double begin_ms = clock_ms();

        laps->n = n;
        device_health(device, &conditions->before);
        if (laps_time(timings, laps, err))
            return -1;
        device_health(device, &conditions->after);
        if (canary && canary_judge(canary, begin_ms, &verdict, err))
            return -1;
    } while (verdict == CANARY_AGAIN);
    conditions->is_disturbed =
        verdict == CANARY_DISTURBED ||
        device_was_throttled(device, &conditions->before, &conditions->after);
    return 0;
}
