/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_BENCH_H
#define NEUROSHARD_MICROBENCH_BENCH_H

#include "device/device.h"
#include "microbench/bench_options.h"

/*
 * Microbenchmark: draws cases from a seed, measures each case on a device and
 * passes the samples to a sink.
 *
 * Case i of a list is the same on every machine and in every run. So a run that
 * was stopped can be resumed: it asks the sink which samples are already there.
 * The seed field of a sample holds the id of its case list (case_list_id in
 * microbench/sampler.h).
 */

/* If memory_bytes is 0, sets it to the free memory of the device minus the
 * memory that cases need in addition to their tables. The result is rounded
 * down by at most a sixteenth, so that the next run gets the same value.
 * ERR_DEVICE if too little memory is left. */
int bench_fit_memory(struct bench_options *options, const struct device *device,
                     struct err *err) MUST_CHECK;

/* Measures the cases of a list. The options must have passed
 * bench_check_options. ERR_DEVICE if the device has too
 * little memory. Errors of the sink are passed on. */
int bench_lookup(struct bench_result *result, struct device *device,
                 const struct bench_options *options, struct sample_sink *sink,
                 struct err *err) MUST_CHECK;

#endif
