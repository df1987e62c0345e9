/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_REPETITIONS_H
#define NEUROSHARD_DEVICE_REPETITIONS_H

#include "device/interference_probe.h"
#include "device/world.h"

/*
 * Timing of repeated work. The work is run once per repetition, and each run
 * reports the times of its parts. The results are the median and deciles of
 * each part over all repetitions after a warm-up.
 */

#define REPETITION_MAX_PARTS 5

struct repetitions {
    /* Runs the work once and stores the times of its parts in ms[n_parts].
     * `number`: number of the repetition, counted from the first warm-up. */
    int (*once)(void *ctx, unsigned number, double *ms, struct err *err);
    void *ctx;
    unsigned n_parts, n_warm_up;
    /* Number of repetitions to be timed, >= 1. Afterwards, repetitions_time has
     * replaced it by the number of repetitions that were timed. */
    unsigned n;
    /* Largest number of repetitions to be timed. 0 means that exactly n
     * repetitions are timed. Otherwise, if the times of the last part are
     * unsteady, repetitions are added until there are n_most in all or 30 ms
     * have passed. Times are unsteady if their median of |x - median| is 1 % of
     * the median or more. */
    unsigned n_most;
    /* If set, the times of a repetition are those of the slowest process of
     * this world. The calls are then collective, and n_most must be 0. NULL:
     * only the times of this process count. */
    struct world *world;
};

/* Runs and times all repetitions. Stores the results in timings[n_parts]. */
int repetitions_time(struct timing *timings, struct repetitions *repetitions,
                     struct err *err) MUST_CHECK;

/* State of the device before and after the repetitions. */
struct repetition_conditions {
    struct sample_health before, after;
    /* true if the interference probe found the machine disturbed until its
     * patience ran out, or if the device's clocks were lowered */
    bool is_disturbed;
};
/* Does the same as repetitions_time, but repeats the whole series as long as
 * the interference probe finds the machine disturbed
 * (interference_probe_judge). Only the last series counts. If interference is
 * NULL, the series runs once. */
int repetitions_time_quietly(struct timing *timings,
                             struct repetitions *repetitions,
                             struct device *device,
                             struct interference_probe *interference,
                             struct repetition_conditions *conditions,
                             struct err *err) MUST_CHECK;

#endif
