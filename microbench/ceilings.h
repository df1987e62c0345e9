/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_CEILINGS_H
#define NEUROSHARD_MICROBENCH_CEILINGS_H

#include "device/probe.h"
#include "microbench/bench_options.h"

/*
 * Ceilings of a device: the best rates that probes measure (device/probe.h).
 * Kinds of probes:
 *
 *     "launch"   launch of a kernel
 *     "read"     reads of several sizes
 *     "copy"     copies of several sizes
 *     "gather"   gathers by row width and footprint; footprints range from
 *                one that fits into the last-level cache to one that fills
 *                the memory
 *     "sort"     sorts by number of pairs and by bits of a key
 *
 * A GPU's probes are larger than a CPU's. Probes that do not fit into the
 * memory are left out.
 */

/* Sink for measured ceilings. Its members have the same meaning as the members
 * of struct sample_sink. */
struct ceiling_sink {
    void *ctx;
    int (*put)(void *ctx, const struct sample_setting *setting,
               const struct ceiling *ceiling, struct err *err);
    bool (*has)(void *ctx, const struct sample_setting *setting,
                const struct probe *probe);
};

/* Lists the probes of a GPU, or the probes of the host's CPU, in the order in
 * which they run. Each probe takes at most max_bytes of memory. Returns the
 * number of probes. `probes` has room for CEILINGS_MAX probes. */
#define CEILINGS_MAX 160
size_t ceilings_list(struct probe probes[CEILINGS_MAX], bool is_host,
                     uint64_t max_bytes);

/* Measures the probes whose results are not in the sink, or all probes if
 * options->repeat is set. The run stops at the time limit of the options.
 * options->memory_bytes limits the memory of each probe; 0 means the free
 * memory. options->progress counts probes, so a "case" is a probe here. */
int bench_ceilings(struct bench_result *result, struct device *device,
                   const struct bench_options *options,
                   struct ceiling_sink *sink, struct err *err) MUST_CHECK;

#endif
