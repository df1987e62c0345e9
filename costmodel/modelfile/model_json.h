/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELFILE_MODEL_JSON_H
#define NEUROSHARD_COSTMODEL_MODELFILE_MODEL_JSON_H

#include "base/json.h"
#include "costmodel/modelfile/model.h"

/*
 * The header of a model file as JSON, and parts of it that reports use, too.
 */

/* Reads the header of a model file; model_to_json is its counterpart. The model
 * must be zero on entry. All members are filled except the weights of the net.
 * Texts are copied into the arena. The message of ERR_INPUT names the wrong
 * member. */
int model_from_json(struct model *model, const json_t *root, const char *where,
                    struct arena *arena, struct err *err) MUST_CHECK;
/* Returns a JSON object with everything in the model except the weights.
 * model_to_bytes writes this object into the header. The caller decrefs it. */
json_t *model_to_json(const struct model *model);

/* Returns a JSON object with the errors of a predictor. The caller decrefs
 * it. */
json_t *errors_to_json(const struct errors *errors);
/* Adds the members of a training range to a JSON object. */
void model_range_to_json(const struct model_range *range, json_t *object);

#endif
