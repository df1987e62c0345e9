/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_SETUP_H
#define NEUROSHARD_MICROBENCH_SETUP_H

#include "device/interference_probe.h"
#include "microbench/bench_case.h"

/*
 * Bench setup: the memory in which cases are measured.
 *
 * All weights are one block, which is allocated and touched once. The tables of
 * a case lie in it at pseudo-random places. No batch is looked up twice in a
 * row: lookup_n_cold_sets index sets of the same statistics take turns. A case
 * is measured again while the interference probe (canary) finds the machine
 * disturbed. If the machine stays disturbed, or a GPU lowered its clocks, the
 * sample is flagged SAMPLE_THROTTLED. On a GPU the phases of backward are also
 * timed separately.
 *
 * The timed unit is a repetition (lap): one step, a forward and a backward, on
 * the next index set. Nothing is allocated, copied or waited for between the
 * time marks of a repetition.
 *
 *   On a GPU  The last-level cache is flushed before the forward and before the
 *             backward. All work of a repetition is queued before it starts
 *             (device_hold). The total is the sum of the times of forward and
 *             backward.
 *   On a CPU  Forward and backward run one after the other. The total is the
 *             time of both together.
 *
 * One case of a mixed list may read the block as fp32 and the next case as
 * fp16. So the block is filled with fp16 values that are finite numbers in both
 * readings. The learning rate of a mixed list is 0, so an update does all its
 * work and changes nothing.
 */
struct bench_setup; /* opaque; defined in setup.c */

/* Opens a bench setup. Weights and optimizer states together take the memory
 * that the options name. This holds for every optimizer, so that all optimizers
 * share one case list. */
int setup_open(struct bench_setup **out, struct device *device,
               const struct bench_options *options, struct err *err) MUST_CHECK;
void setup_close(struct bench_setup *setup); /* accepts NULL */
/* Returns the largest amount of device memory that the cases of a list take in
 * addition to weights and states: index sets, outputs, and buffers of backward
 * and of drawing. */
uint64_t setup_reserve_bytes(const struct bench_options *options,
                             const struct device *device);

/* Measures a case, while the interference probe watches the machine. Fills the
 * timings, health, flags, n_iterations, started_at and tables[0 .. n_tables) of
 * *sample. The caller owns sample->tables, which must have room for the case's
 * tables. started_at belongs to the setup and is valid until the next call. */
int setup_measure(struct bench_setup *setup,
                  struct interference_probe *interference,
                  struct sample *sample, const struct bench_case *what,
                  uint64_t stream_seed, struct err *err) MUST_CHECK;

#endif
