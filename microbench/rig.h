/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_RIG_H
#define NEUROSHARD_MICROBENCH_RIG_H

#include "microbench/sampler.h"

/*
 * The test rig: the memory that cases are measured in, and the timing loop.
 *
 * All weights are one block that is allocated and touched once; the tables of
 * a case lie in it at pseudo-random places. A batch is not looked up twice in
 * a row: index sets of the same statistics take turns, as many as
 * lookup_n_cold_sets says. A case is measured again while the canary finds the
 * machine disturbed; where it stays so, the sample is SAMPLE_THROTTLED.
 */
struct rig; /* opaque */

/* Weights and optimizer state together take memory_bytes, whatever the
 * optimizer, so that all share one case list. */
int rig_open(struct rig **out, struct device *device,
             const struct bench_options *options, struct err *err) MUST_CHECK;
void rig_close(struct rig *rig); /* NULL is fine */
/* Bytes for the weights of a case, out of memory_bytes. */
uint64_t rig_weight_bytes(const struct bench_options *options);

/* Measures a case: fills the timings, n_iterations, started_at and
 * tables[0 .. n_tables) of *sample. The caller owns sample->tables, with room
 * for the case's tables; started_at is the rig's until the next call. */
int rig_measure(struct rig *rig, struct sample *sample,
                const struct bench_case *what, uint64_t stream_seed,
                struct err *err) MUST_CHECK;

/* Sorts ms in place. */
struct timing timing_of(double *ms, size_t n);
/* Median of |x - median| over the median; n > 0. */
double timing_spread(const double *ms, size_t n);

#endif
