/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELFILE_PRODUCTS_JSON_H
#define NEUROSHARD_COSTMODEL_MODELFILE_PRODUCTS_JSON_H

#include "base/json.h"
#include "costmodel/formulas/product_times.h"

/* The member "products" of a model file: measured matrix products
 * (neuroshard-model(5)). */

/* Returns the products as JSON, which the caller decrefs. Products of equal
 * type and form are one group. Groups are in the order of their first
 * products. */
json_t *products_to_json(const struct product_times *times);
/* Reads the member "products" of the header of a model file, into the arena.
 * Without the member there are no products. The message of ERR_INPUT names the
 * wrong member. */
int products_from_json(struct product_times *times,
                       const struct json_place *root, struct arena *arena,
                       struct err *err) MUST_CHECK;

#endif
