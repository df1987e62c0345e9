/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_BENCH_SUMMARY_H
#define NEUROSHARD_CLI_BENCH_SUMMARY_H

#include "cli/command.h"
#include "io/store.h"
#include "microbench/bench.h"

/* What the benches of `neuroshard bench` share, and what they say when they are
 * done. */

struct bench {
    struct cli *cli;
    struct bench_options options;
    struct world *world;   /* of exchanges; owned, as all that is opened */
    struct device *device; /* NULL where nothing is measured */
    struct comm *comm;     /* of exchanges */
    struct store *store;   /* NULL in all processes but the first */
    struct progress progress;
    struct bench_result result;
    double begin_ms, seconds;
};

/* Around what is measured: with a progress, which counts n of `label` (0: as
 * many as there are). */
void bench_begin(struct bench *bench, const char *label, uint64_t n);
void bench_end(struct bench *bench);
/* The way into the store, with --verbose a line on stdout for each that is
 * safe. */
struct sample_sink bench_sink(const struct bench *bench);

/* "interrupt", "time" or "done". */
const char *bench_stopped_by(const struct bench_result *result);
/* ERR_INTERRUPTED, and how to go on, where it was. */
int bench_tell_interrupt(const struct bench_result *result,
                         struct err *err) MUST_CHECK;

/* Lines of a summary: the device; how many of those asked for, which are
 * called `what`, there are, and samples of them. */
void bench_print_device(const struct device *device);
void bench_print_counts(const struct bench *bench, const char *what);
/* {name, isa, threads} */
json_t *bench_machine_to_json(const struct device *device);

/* Of look-ups: repeats and sentinels of the list in the store are compared. */
int bench_print_lookups(const struct bench *bench, struct err *err) MUST_CHECK;
/* Of --ceilings: all that the store has of this device. */
int bench_print_ceilings(const struct bench *bench, struct err *err) MUST_CHECK;

/*
 * `neuroshard bench --alltoall RANKS`, from the processes to the summary. One
 * process is all ranks; started by a launcher, each process is one, and the
 * first of them stores and prints. The bench's options are read and checked;
 * db, device, threads, alltoall, verbose and json come from the command line.
 */
int bench_exchanges(struct bench *bench, struct err *err) MUST_CHECK;

#endif
