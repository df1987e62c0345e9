/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_BENCH_SUMMARY_H
#define NEUROSHARD_CLI_BENCH_SUMMARY_H

#include "base/json.h"
#include "cli/command.h"
#include "costmodel/evaluate.h"
#include "io/store.h"
#include "microbench/bench.h"
#include "microbench/ceilings.h"

/* What `neuroshard bench` says when it is done. */

struct bench_summary {
    const char *db;
    const struct device *device;
    const struct bench_options *options;
    struct bench_result result;
    double seconds;
    struct errors repeats; /* see evaluate_cases */
    struct sentinels sentinels;
};

/* The way into the store, with --verbose a line on stdout for each that is
 * safe. */
struct sample_sink bench_sink(struct store *store, const struct cli *cli);

/* "interrupt", "time" or "done". */
const char *bench_stopped_by(const struct bench_result *result);
/* ERR_INTERRUPTED, and how to go on, where it was. */
int bench_tell_interrupt(const struct bench_result *result,
                         struct err *err) MUST_CHECK;

/* Lines of a summary: the device; how many of those asked for, which are
 * called `what`, there are, and samples of them. */
void bench_print_device(const struct device *device);
void bench_print_counts(const struct bench_result *result, const char *what,
                        const struct bench_options *options);
/* {name, isa, threads} */
json_t *bench_machine_to_json(const struct device *device);

/* Compares repeats and sentinels of the list in the store: fills the fields
 * behind `seconds`. */
int bench_summary_examine(struct bench_summary *summary, struct store *store,
                          struct arena *arena, struct err *err) MUST_CHECK;
void bench_summary_print(const struct bench_summary *summary);
void bench_summary_print_json(const struct bench_summary *summary);

/* Of --ceilings: prints all that the store has of this device, as a table or as
 * JSON. */
int bench_ceilings_print(struct store *store, const struct device *device,
                         const struct bench_options *options, bool as_json,
                         struct arena *arena, struct err *err) MUST_CHECK;

#endif
