/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_COMM_JSON_H
#define NEUROSHARD_COSTMODEL_COMM_JSON_H

#include "base/json_place.h"
#include "base/mem.h"
#include "costmodel/comm_model.h"

/*
 * The member "comm" of a model file, see neuroshard-model(5):
 *
 *     {"form": "total", "source": "...", "curves":
 *         [{"ranks": 2, "hosts": 1, "knots": [[BYTES, US], ...]}, ...]}
 *
 * Files of format 1 have "alpha_us" and "gbps" in the place of "curves": one
 * line, for any number of ranks.
 */
json_t *comm_to_json(const struct comm_fit *fit);
/* ERR_INPUT for what is no such object. */
int comm_from_json(struct comm_fit *fit, const struct json_place *place,
                   struct arena *arena, struct err *err) MUST_CHECK;

#endif
