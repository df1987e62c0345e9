/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_LAPS_H
#define NEUROSHARD_MICROBENCH_LAPS_H

#include "device/lookup.h"
#include "microbench/bench.h"

/*
 * The timing loop. A lap is one step, a forward and a backward, on the next of
 * the index sets that take turns. On a GPU the last-level cache is flushed
 * before each of the two, all of a timed lap is queued before it
 * starts (device_hold), and total is the sum of both; on a CPU they run one
 * behind the other and total is both together. Nothing is allocated, copied or
 * waited for between the marks.
 */

/* What is looked up, again and again. */
struct course {
    struct device *device;
    struct lookup *lookup;
    const struct lookup_batch *sets; /* [n_sets] */
    unsigned n_sets;
    void *d_out;
    const void *d_grad;
    float learning_rate;
};

/* Times `n_min` laps or more after a warm-up, until they are steady or have
 * taken long enough; fills forward, backward, total and n_iterations. */
int laps_time(struct sample *sample, const struct course *course,
              unsigned n_min, struct err *err) MUST_CHECK;
/* Times the phases of backward, each with a flushed cache, in a few laps of
 * their own; fills linearise, sort and update. */
int laps_time_phases(struct sample *sample, const struct course *course,
                     struct err *err) MUST_CHECK;

/* Median of |x - median| over the median; n > 0. */
double timing_spread(const double *ms, size_t n);

#endif
