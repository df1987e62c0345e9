/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_SETUP_H
#define NEUROSHARD_MICROBENCH_SETUP_H

#include "device/interference_probe.h"
#include "microbench/sampler.h"

/*
 * Bench setup: the memory in which cases are measured.
 *
 * All weights are one block, which is allocated and touched once. The tables of
 * a case lie in it at pseudo-random places. No batch is looked up twice in a
 * row: several index sets of the same statistics take turns, lookup_n_cold_sets
 * of them. A case is measured again while the interference probe (canary) finds
 * the machine disturbed. If the machine stays disturbed, or a GPU lowered its
 * clocks, the sample is flagged SAMPLE_THROTTLED. On a GPU the phases of
 * backward are also timed separately.
 *
 * The timed unit is a repetition (lap): one step, a forward and a backward, on
 * the next index set. On a GPU the last-level cache is flushed before the
 * forward and before the backward; all work of a repetition is queued before it
 * starts (device_hold); and the total is the sum of both times. On a CPU they
 * run one after the other, and the total is the time of both together. Nothing
 * is allocated, copied or waited for between the marks.
 *
 * One case of a mixed list may read the block as fp32 and the next one as fp16.
 * So the block is filled with fp16 values, which are finite numbers in both
 * readings. The learning rate is 0: an update then does all its work and
 * changes nothing.
 */
struct bench_setup; /* opaque */

/* Opens a bench setup. Weights and optimizer states together take the memory
 * that the options name, whichever optimizer is used, so that all optimizers
 * share one case list. */
int setup_open(struct bench_setup **out, struct device *device,
               const struct bench_options *options, struct err *err) MUST_CHECK;
void setup_close(struct bench_setup *setup); /* NULL is fine */
/* Returns the most device memory that cases of a list take apart from weights
 * and states: index sets, outputs, and buffers of backward and of drawing. */
uint64_t setup_reserve_bytes(const struct bench_options *options,
                             const struct device *device);

/* Measures a case, watched by the interference probe. Fills the timings,
 * health, flags, n_iterations, started_at and tables[0 .. n_tables) of *sample.
 * The caller owns sample->tables, with room for the case's tables. started_at
 * belongs to the setup and is valid until the next call. */
int setup_measure(struct bench_setup *setup,
                  struct interference_probe *interference,
                  struct sample *sample, const struct bench_case *what,
                  uint64_t stream_seed, struct err *err) MUST_CHECK;

#endif
