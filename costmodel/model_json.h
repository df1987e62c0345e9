/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODEL_JSON_H
#define NEUROSHARD_COSTMODEL_MODEL_JSON_H

#include "costmodel/model_file.h"

/* The header of a model file; model_to_json is its counterpart. Fills all of
 * the model, which is zero, but of the net its shape alone. Copies what it
 * keeps into the arena. ERR_INPUT names the member. */
int model_from_json(struct model *model, const json_t *root, const char *where,
                    struct arena *arena, struct err *err) MUST_CHECK;

/* Everything but weights, as model_to_bytes puts it into the header; the
 * caller decrefs it. */
json_t *model_to_json(const struct model *model);

#endif
