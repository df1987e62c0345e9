/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_BENCH_CEILINGS_H
#define NEUROSHARD_CLI_BENCH_CEILINGS_H

#include "io/store.h"
#include "microbench/ceilings.h"

/* `neuroshard bench --ceilings`: measures the ceilings that the store lacks. */
int bench_ceilings_measure(struct bench_result *result, struct device *device,
                           const struct bench_options *options,
                           struct store *store, struct err *err) MUST_CHECK;
/* Prints all that the store has of this device, as a table or as JSON. */
int bench_ceilings_print(struct store *store, const struct device *device,
                         const struct bench_options *options, bool as_json,
                         struct arena *arena, struct err *err) MUST_CHECK;

#endif
