/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_BENCH_ALLTOALL_H
#define NEUROSHARD_CLI_BENCH_ALLTOALL_H

#include "cli/bench_summary.h"

/*
 * `neuroshard bench --alltoall RANKS`, from the processes to the summary. One
 * process is all ranks; started by a launcher, each process is one, and the
 * first of them stores and prints. The bench's options are read and checked;
 * db, device, threads, alltoall, verbose and json come from the command line.
 */
int bench_exchanges(struct bench *bench, struct err *err) MUST_CHECK;

#endif
