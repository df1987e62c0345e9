/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_DRIFT_H
#define NEUROSHARD_COSTMODEL_DRIFT_H

#include "base/mem.h"
#include "core/sample.h"
#include "costmodel/interval.h"
#include "costmodel/model_file.h"

/*
 * Whether a device still does what it did: a driver or a clock changes its
 * times for good. That shows in what was measured over what the model in use
 * says, in the order of time, of samples that the model did not learn from;
 * those of like work are compared, so that other cases are no drift. A net is
 * asked through costmodel/gemm.h: gemm_init comes first.
 */

/* Errors of a model at its promotion, on the held-out samples between the first
 * and the last that it learned from, and on those since, or since the drift
 * where that is later. */
struct drift_class {
    struct errors then, now; /* of none NAN */
    double ratio;            /* median of measured over said now; NAN of none */
};

struct drift {
    bool is_seen;
    const char *since; /* UTC of the device as it is now; without drift of the
                          first sample that the model learned from */
    struct drift_class classes[MAX_INTERVALS]; /* interval_classes */
};

/* Samples that have no UTC are older than all others. Borrows the samples. */
void drift_find(struct drift *drift, const struct model *model,
                const struct sample *samples, size_t n);

/* Weighs samples by age: those measured since then count, older ones do not,
 * now or ever after, as long as a model follows that learned without them.
 * Moves those that count to the front, in their order; returns how many they
 * are. */
size_t drift_weigh(const char *since, struct sample *samples, size_t n);

#endif
