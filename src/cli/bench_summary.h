/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_BENCH_SUMMARY_H
#define NEUROSHARD_CLI_BENCH_SUMMARY_H

#include "cli/command.h"
#include "io/store.h"
#include "microbench/bench.h"

/* What the benches of `neuroshard bench` say when they are done. */

struct bench {
    struct cli *cli;
    struct bench_options options;
    struct world *world;   /* of exchanges; owned, as all that is opened */
    struct device *device; /* NULL where nothing is measured */
    struct comm *comm;     /* of exchanges */
    struct store *store;   /* NULL in all processes but the first */
    struct bench_result result;
    double seconds;
};

/* {name, isa, threads} */
json_t *bench_machine_to_json(const struct device *device);

/* Of look-ups: repeats and sentinels of the list in the store are compared. */
int bench_print_lookups(const struct bench *bench, struct err *err) MUST_CHECK;
/* Of --alltoall, also how well exchanges in the store are predicted. */
int bench_print_exchanges(const struct bench *bench,
                          struct err *err) MUST_CHECK;
/* Of --ceilings: all that the store has of this device. */
int bench_print_ceilings(const struct bench *bench, struct err *err) MUST_CHECK;

#endif
