/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_BENCH_ALLTOALL_H
#define NEUROSHARD_CLI_BENCH_ALLTOALL_H

#include "cli/command.h"
#include "microbench/bench.h"

/*
 * `neuroshard bench --alltoall RANKS`, from the processes to the summary. One
 * process is all ranks; started by a launcher, each process is one, and the
 * first of them stores and prints. options are read and checked; db, device,
 * threads, alltoall, verbose and json come from the command line.
 */
int bench_exchanges(struct cli *cli, struct bench_options *options,
                    struct err *err) MUST_CHECK;

#endif
