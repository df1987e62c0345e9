/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_CEILINGS_H
#define NEUROSHARD_MICROBENCH_CEILINGS_H

#include "device/probe.h"
#include "microbench/bench.h"

/*
 * The ceilings of a device (device/probe.h): a launch; reads and copies of
 * several sizes; gathers by width of a row and footprint, from what the
 * last-level cache holds to what the memory does; sorts by number of pairs and
 * bits of a key. A GPU's probes are larger than a CPU's; those that do not fit
 * are left out.
 */

/* Where ceilings go, with the meaning of struct sample_sink. */
struct ceiling_sink {
    void *ctx;
    int (*put)(void *ctx, const struct sample_setting *setting,
               const struct ceiling *ceiling, struct err *err);
    bool (*has)(void *ctx, const struct sample_setting *setting,
                const struct probe *probe);
};

/* The probes of a GPU, or of the host, in the order they are run: at most
 * max_bytes of its memory for each. Returns how many; probes has room for
 * CEILINGS_MAX. */
#define CEILINGS_MAX 160
size_t ceilings_list(struct probe probes[CEILINGS_MAX], bool is_host,
                     uint64_t max_bytes);

/* Measures the probes that the sink does not have, or with options->repeat
 * all; options->memory_bytes bounds each, 0 by what is free. Of the options,
 * time limit and progress count as well; a "case" is a probe. */
int bench_ceilings(struct bench_result *result, struct device *device,
                   const struct bench_options *options,
                   struct ceiling_sink *sink, struct err *err) MUST_CHECK;

#endif
