/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_BENCH_ANSWERS_H
#define NEUROSHARD_CLI_BENCH_ANSWERS_H

#include "base/cli.h"
#include "device/device.h"
#include "microbench/bench_options.h"

/* Parts of answers that all measurements of `bench` share. */

/* Returns the reason why the measurement ended: "interrupt", "time" or
 * "done". */
const char *bench_stopped_by(const struct bench_result *result);
/* Prints the line of the device: name, instruction set and threads. */
void bench_print_device(const struct device *device);
/* If the measurement was interrupted, returns -1 with ERR_INTERRUPTED; the
 * message says how to continue. */
int bench_tell_interrupt(const struct bench_result *result,
                         struct err *err) MUST_CHECK;

#endif
