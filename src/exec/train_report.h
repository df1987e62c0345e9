/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TRAIN_REPORT_H
#define NEUROSHARD_EXEC_TRAIN_REPORT_H

#include "base/json.h"
#include "device/device.h"
#include "exec/train_result.h"

/* Report on a training: measured times next to those that the plan's cost model
 * predicts, the losses, and the comparison with the reference. */

struct train_report {
    const struct plan *plan;
    const struct device *device;
    const struct exec_train_options *options;
    const struct train_result *result;
    /* Rule by which the plan's phases combine into a step; its pipeline is that
     * of the training. */
    struct step step;
    struct arena *arena;
};

/* Return the predicted time of a phase, and of the step, in ms. The time of a
 * phase is NAN if the plan has no predicted times by phase. The times of the
 * step and of phases of the dense part are also NAN if the dense part has no
 * price. The all-reduce of dense gradients runs after the backward pass here,
 * so it counts as a whole. */
double train_predicted_ms(const struct train_report *run,
                          enum train_phase phase);
double train_predicted_step_ms(const struct train_report *run);

/* Appends the report as text. */
void train_report_print(const struct train_report *run, struct buf *out);
/* Returns the report as JSON; the caller decrefs it. */
json_t *train_report_to_json(const struct train_report *run);

#endif
