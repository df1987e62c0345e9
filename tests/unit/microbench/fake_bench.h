/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_MICROBENCH_FAKE_BENCH_H
#define NEUROSHARD_TESTS_UNIT_MICROBENCH_FAKE_BENCH_H

/*
 * Replacements for the clock, the bench setup and the interference probe, for
 * tests of the order in which a benchmark measures. The test defines
 * setup_measure and advances now_ms. Include in one file only.
 */

#include "base/clock.h"
#include "microbench/bench_options.h"
#include "microbench/setup.h"
#include "tests/tap.h"

static double now_ms; /* time that clock_ms returns */
/* numbers of calls of setup_open and interference_probe_teach */
static unsigned n_setups, n_taught;

double clock_ms(void)
{
    return now_ms;
}

const char *clock_utc(char buf[CLOCK_TEXT_MAX])
{
    snprintf(buf, CLOCK_TEXT_MAX, "2026-11-22T09:00:00Z");
    return buf;
}

int setup_open(struct bench_setup **out, struct device *device,
               const struct bench_options *options, struct err *err)
{
    (void)device, (void)options, (void)err;
    *out = (struct bench_setup *)&n_setups;
    n_setups++;
    return 0;
}

void setup_close(struct bench_setup *setup)
{
    (void)setup;
}

uint64_t setup_reserve_bytes(const struct bench_options *options,
                             const struct device *device)
{
    (void)options, (void)device;
    return 1000;
}

int interference_probe_open(struct interference_probe **out,
                            struct device *device, struct err *err)
{
    (void)device, (void)err;
    *out = NULL;
    return 0;
}

/* Time that interference_probe_limit set. */
static double limit_ms;

void interference_probe_limit(struct interference_probe *interference,
                              double end_ms)
{
    (void)interference;
    limit_ms = end_ms;
}

void interference_probe_close(struct interference_probe *interference)
{
    (void)interference;
}

int interference_probe_learn(struct interference_probe *interference,
                             const struct sample_sink *sink,
                             const struct sample_setting *setting,
                             struct err *err)
{
    (void)interference, (void)sink, (void)setting, (void)err;
    return 0;
}

int interference_probe_teach(struct interference_probe *interference,
                             const struct sample_sink *sink,
                             const struct sample_setting *setting,
                             struct err *err)
{
    (void)interference, (void)sink, (void)setting, (void)err;
    n_taught++;
    return 0;
}

#endif
