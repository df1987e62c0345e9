/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_ALLTOALL_CASE_H
#define NEUROSHARD_MICROBENCH_ALLTOALL_CASE_H

#include "device/comm.h"
#include "microbench/bench_options.h"

/* Benchmark of exchanges. */

/*
 * Measures the all-to-all between the 2 to 1024 ranks of a comm, for n_cases
 * loads. Loads are even or uneven, and have a size of 4 B, or min_bytes, to 1
 * GiB or to half of the memory. Stores comm samples of the comm's kind, and
 * skips loads that are stored already. Forward and backward exchanges
 * alternate. They form one sample, because both move the same blocks.
 *
 * The options must have passed bench_check_options. With several processes the
 * call is collective: all processes pass the same options, and only the sink of
 * the first process is used (the others may be NULL).
 */
int bench_alltoall(struct bench_result *result, struct comm *comm,
                   const struct bench_options *options,
                   struct sample_sink *sink, struct err *err) MUST_CHECK;

#endif
