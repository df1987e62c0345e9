/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_CEILINGS_H
#define NEUROSHARD_MICROBENCH_CEILINGS_H

#include "device/probe.h"
#include "microbench/bench.h"

/*
 * Ceilings of a device: its best measured rates (device/probe.h). The probes
 * are
 *
 *     launch   of a kernel
 *     read     of several sizes
 *     copy     of several sizes
 *     gather   by row width and footprint; footprints range from one that fits
 *              the last-level cache to one that fills the memory
 *     sort     by number of pairs and bits of a key
 *
 * A GPU's probes are larger than a CPU's. Probes that do not fit the memory are
 * left out.
 */

/* Sink for ceilings; the members have the same meaning as in struct
 * sample_sink. */
struct ceiling_sink {
    void *ctx;
    int (*put)(void *ctx, const struct sample_setting *setting,
               const struct ceiling *ceiling, struct err *err);
    bool (*has)(void *ctx, const struct sample_setting *setting,
                const struct probe *probe);
};

/* Lists the probes of a GPU, or of the host, in the order in which they run;
 * each takes at most max_bytes of memory. Returns their number. `probes` has
 * room for CEILINGS_MAX. */
#define CEILINGS_MAX 160
size_t ceilings_list(struct probe probes[CEILINGS_MAX], bool is_host,
                     uint64_t max_bytes);

/* Measures the probes that the sink does not have, or all probes with
 * options->repeat. options->memory_bytes limits the memory of each probe; 0
 * means the free memory. Also uses the time limit and progress of the options;
 * a "case" is a probe. */
int bench_ceilings(struct bench_result *result, struct device *device,
                   const struct bench_options *options,
                   struct ceiling_sink *sink, struct err *err) MUST_CHECK;

#endif
