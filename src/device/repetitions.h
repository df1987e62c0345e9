/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_REPETITIONS_H
#define NEUROSHARD_DEVICE_REPETITIONS_H

#include "device/interference_probe.h"
#include "device/world.h"

/*
 * Timing of repeated work. Each repetition reports the times of its parts. The
 * results are medians and deciles over the repetitions after a warm-up.
 */

#define REPETITION_MAX_PARTS 4

struct repetitions {
    /* Runs repetition `number`, counted from the first warm-up, and stores the
     * times of its parts in ms[n_parts]. */
    int (*once)(void *ctx, unsigned number, double *ms, struct err *err);
    void *ctx;
    unsigned n_parts, n_warm_up;
    /* Repetitions to be timed, >= 1. Afterwards: the number that were timed. */
    unsigned n;
    /* Most repetitions to be timed; 0: always n. If the times of the last part
     * are unsteady (their median of |x - median| is 1 % of the median or more),
     * repetitions are added until there are n_most in all or 30 ms have
     * passed. */
    unsigned n_most;
    /* If set, the slowest process of this world counts in each repetition. The
     * calls are then collective, and n_most must be 0. NULL: this process
     * alone. */
    struct world *world;
};

/* Runs and times all repetitions. Stores timings[n_parts]. */
int repetitions_time(struct timing *timings, struct repetitions *repetitions,
                     struct err *err) MUST_CHECK;

/* State of the device before and after the repetitions. */
struct repetition_conditions {
    struct sample_health before, after;
    /* The interference probe found the machine disturbed until patience ran
     * out, or the device's clocks were lowered. */
    bool is_disturbed;
};
/* Like repetitions_time, but repeats everything while the interference probe
 * finds the machine disturbed (interference_probe_judge). The last series
 * counts. If canary is NULL, it runs once. */
int repetitions_time_quietly(struct timing *timings,
                             struct repetitions *repetitions,
                             struct device *device,
                             struct interference_probe *interference,
                             struct repetition_conditions *conditions,
                             struct err *err) MUST_CHECK;

#endif
