/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_DRIFT_H
#define NEUROSHARD_COSTMODEL_LEARNING_DRIFT_H

#include "base/mem.h"
#include "core/sample.h"
#include "costmodel/formulas/interval.h"
#include "costmodel/modelfile/model.h"

/*
 * Detects drift: a lasting change of a device's times, for example by a new
 * driver or clock. Drift shows in the ratio of measured time to predicted time.
 * The current model makes the predictions, for samples in time order that it
 * did not learn from. Samples of similar work are compared with each other, so
 * measuring other cases does not look like drift. Nets are evaluated through
 * device/gemm.h: call gemm_init first.
 */

/* Errors of a model for one class of devices, in two periods:
 *   then  when the model was promoted: held-out samples between the first and
 *         the last sample that the model learned from
 *   now   since the promotion, or since the drift if the drift is later */
struct drift_class {
    /* Errors in each period; NAN if it has no samples. */
    struct errors then, now;
    /* Median of measured over predicted time in the period `now`; NAN if it has
     * no samples. */
    double ratio;
};

struct drift {
    bool is_seen;
    /* UTC of the time from which on the device behaves as it does now. If there
     * is no drift, it is the UTC of the first sample that the model learned
     * from. */
    const char *since;
    /* Classes in the order of interval_classes. */
    struct drift_class classes[MAX_INTERVALS];
};

/* Finds the latest drift. Samples without a UTC are older than all others. The
 * samples are borrowed. */
void drift_find(struct drift *drift, const struct model *model,
                const struct sample *samples, size_t n);

/* Removes samples that are older than `since`. Moves the other samples to the
 * front, in their order, and returns their number. A removed sample does not
 * count for later models either, as long as each new model was trained without
 * it. */
size_t drift_weigh(const char *since, struct sample *samples, size_t n);

#endif
