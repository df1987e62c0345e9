/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_OPTIONS_H
#define NEUROSHARD_EXEC_EXEC_OPTIONS_H

#include "base/progress.h"
#include "core/sample.h"
#include "core/step.h"

/* Options of an execution. */

struct exec_options {
    /* Factor by which the number of rows of each table is scaled, in (0, 1]. */
    double scale_rows;
    /* Number of timed iterations after the warm-up; >= 1. */
    unsigned n_iterations;
    uint64_t seed;
    /* Steps from one sync of the sharding groups to the next, for the report
     * only; 0: unknown. */
    uint64_t sync_every;
    /* Bytes of device memory to use; 0: all free memory. */
    uint64_t memory_bytes;
    /* True to compare one step with the reference. */
    bool check;
    /* True to repeat the timing of a rank while other load disturbs the machine
     * (see device/interference_probe.h). */
    bool wait_for_quiet;
    /* Rule by which the phases combine into a step. Default: one phase after
     * the other, without a dense part. */
    struct step step;
    /* Sink for samples, used only in process 0; may be NULL. It gets a
     * SAMPLE_EXECUTED for each rank whose lookups all have one precision. The
     * sample is flagged SAMPLE_THROTTLED if the rank was disturbed. The sink
     * also gets a comm_sample if the exchange was measured. */
    struct sample_sink *sink;
    /* Counter for the ranks that this process has timed; may be NULL. */
    struct progress *progress;
};
void exec_options_init(struct exec_options *options);

#endif
