/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_RIG_H
#define NEUROSHARD_MICROBENCH_RIG_H

#include "device/canary.h"
#include "microbench/sampler.h"

/*
 * The test rig: the memory that cases are measured in.
 *
 * All weights are one block that is allocated and touched once; the tables of
 * a case lie in it at pseudo-random places. A batch is not looked up twice in
 * a row: index sets of the same statistics take turns, as many as
 * lookup_n_cold_sets says. A case is measured again while the canary finds the
 * machine disturbed; where it stays so, or a GPU had lowered its clocks, the
 * sample is SAMPLE_THROTTLED. On a GPU the phases of backward are timed apart
 * as well.
 *
 * What is timed is a lap: one step, a forward and a backward, on the next index
 * set. On a GPU the last-level cache is flushed before each of the two, all of
 * a timed lap is queued before it starts (device_hold), and total is the sum of
 * both; on a CPU they run one behind the other and total is both together.
 * Nothing is allocated, copied or waited for between the marks.
 *
 * The block of a mixed list is read as fp32 by one case and as fp16 by the
 * next. It is filled with fp16 values, which are finite numbers read either
 * way, and updated at the learning rate 0, which does all the work of an
 * update and changes nothing.
 */
struct rig; /* opaque */

/* Weights and optimizer states together take the memory that the options
 * name, whatever the optimizer, so that all share one case list. */
int rig_open(struct rig **out, struct device *device,
             const struct bench_options *options, struct err *err) MUST_CHECK;
void rig_close(struct rig *rig); /* NULL is fine */
/* What cases of a list take on a device at most, beside weights and states:
 * index sets, outputs, what backward and drawing need. */
uint64_t rig_reserve_bytes(const struct bench_options *options,
                           const struct device *device);

/* Measures a case beside a canary: fills the timings, health, flags,
 * n_iterations, started_at and tables[0 .. n_tables) of *sample. The caller
 * owns sample->tables, with room for the case's tables; started_at is the rig's
 * until the next call. */
int rig_measure(struct rig *rig, struct canary *canary, struct sample *sample,
                const struct bench_case *what, uint64_t stream_seed,
                struct err *err) MUST_CHECK;

#endif
