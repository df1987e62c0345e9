/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_BENCH_SUMMARY_H
#define NEUROSHARD_CLI_BENCH_SUMMARY_H

#include "io/store.h"
#include "microbench/bench.h"

/* What `neuroshard bench` says when it is done. */

/* Fractions; NAN where there is nothing to know. */
struct bench_summary {
    const char *db;
    const struct device *device;
    const struct bench_options *options;
    struct bench_result result;
    double seconds;
    double repeat_median_frac, repeat_mean_frac;
    size_t n_repeats;
    double drift_frac, sentinel_spread_frac;
    size_t n_sentinels;
};

/* "interrupt", "time" or "done". */
const char *bench_stopped_by(const struct bench_result *result);

/* Compares repeats and sentinels of the list in the store: fills the fields
 * behind `seconds`. */
int bench_summary_examine(struct bench_summary *summary, struct store *store,
                          struct arena *arena, struct err *err) MUST_CHECK;
void bench_summary_print(const struct bench_summary *summary);
void bench_summary_print_json(const struct bench_summary *summary);

#endif
