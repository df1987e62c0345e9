/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_EVALUATION_REPORT_H
#define NEUROSHARD_COSTMODEL_LEARNING_EVALUATION_REPORT_H

#include "base/json.h"
#include "costmodel/learning/evaluate.h"

/* Reports on an evaluation, for people and as JSON. */

/* Prints an evaluation: appends lines to `out`. */
void evaluation_print(const struct evaluation *evaluation, struct buf *out);
/* Returns a JSON list of the intervals in evaluation->covered, with their
 * coverage. The caller decrefs the list. */
json_t *covered_to_json(const struct evaluation *evaluation);
/* Returns a JSON object: {held_out: errors of each predictor, settings: errors
 * of each class, repeats, ...}. The caller decrefs the object. */
json_t *evaluation_to_json(const struct evaluation *evaluation);

#endif
