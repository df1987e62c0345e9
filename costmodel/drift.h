/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_DRIFT_H
#define NEUROSHARD_COSTMODEL_DRIFT_H

#include "base/mem.h"
#include "core/sample.h"
#include "costmodel/interval.h"
#include "costmodel/model_file.h"

/*
 * Detects drift: a lasting change of a device's times, for example by a new
 * driver or clock. It shows in the ratio of measured time to the time that the
 * current model predicts, over samples in time order that the model did not
 * learn from. Samples of similar work are compared with each other, so
 * measuring other cases does not look like drift. Nets are evaluated through
 * costmodel/gemm.h: call gemm_init first.
 */

/* Errors of a model for one class of devices. `then` is at its promotion:
 * held-out samples between the first and the last that it learned from. `now`
 * is since then, or since the drift if that is later. */
struct drift_class {
    struct errors then, now; /* NAN without samples */
    /* Median of measured over predicted time now; NAN without samples. */
    double ratio;
};

struct drift {
    bool is_seen;
    /* UTC from which on the device behaves as it does now; without drift, UTC
     * of the first sample that the model learned from. */
    const char *since;
    /* By index in interval_classes. */
    struct drift_class classes[MAX_INTERVALS];
};

/* Finds the latest drift. Samples without a UTC are older than all others. The
 * samples are borrowed. */
void drift_find(struct drift *drift, const struct model *model,
                const struct sample *samples, size_t n);

/* Drops samples that are older than `since`. All samples from then on count.
 * Older ones do not, and will not later, as long as each next model was trained
 * without them. Moves the samples that count to the front, in their order, and
 * returns their number. */
size_t drift_weigh(const char *since, struct sample *samples, size_t n);

#endif
