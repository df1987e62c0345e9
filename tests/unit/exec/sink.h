/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_EXEC_SINK_H
#define NEUROSHARD_TESTS_UNIT_EXEC_SINK_H

#include "core/sample.h"

/* Callbacks of a sample sink that has no samples and stores no exchanges. */
static inline int keep_comm(void *ctx, const struct sample_setting *setting,
                            const struct comm_sample *sample, struct err *err)
{
    (void)ctx, (void)setting, (void)sample, (void)err;
    return 0;
}

static inline int has_none(void *ctx, const struct sample_setting *setting,
                           uint64_t seed, uint64_t case_idx,
                           enum sample_kind kind, uint32_t part)
{
    (void)ctx, (void)setting, (void)seed, (void)case_idx, (void)kind,
        (void)part;
    return 0;
}

#endif
