/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LAPS_H
#define NEUROSHARD_DEVICE_LAPS_H

#include "device/canary.h"
#include "device/world.h"

/*
 * How work is timed: lap after lap of it, each of which says how long its
 * parts took; medians and deciles over the laps behind a warm-up.
 */

#define LAPS_MAX_PARTS 4

struct laps {
    /* The ms[n_parts] of lap `number`, counted from the first that warms up. */
    int (*once)(void *ctx, unsigned number, double *ms, struct err *err);
    void *ctx;
    unsigned n_parts, n_warm_up;
    unsigned n; /* to be timed, >= 1; afterwards those that were */
    /* Times whose last part is unsteady, the median of |x - median| being 1 %
     * of the median or more, get more laps, up to so many in all or for 30 ms;
     * 0: never. */
    unsigned n_most;
    struct world *world; /* whose last process counts, lap by lap; collective;
                            NULL: this one alone. Not with n_most. */
};

/* timings[n_parts] */
int laps_time(struct timing *timings, struct laps *laps,
              struct err *err) MUST_CHECK;

/* What the device was like around the laps. */
struct lap_conditions {
    struct sample_health before, after;
    bool is_disturbed; /* the machine was, and did not become quiet in time, or
                          the device's clocks were lowered */
};
/* The same, and all again while the canary finds the machine disturbed
 * (canary_judge); the last laps count. NULL: once. */
int laps_time_quietly(struct timing *timings, struct laps *laps,
                      struct device *device, struct canary *canary,
                      struct lap_conditions *conditions,
                      struct err *err) MUST_CHECK;

#endif
