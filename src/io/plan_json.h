/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_JSON_H
#define NEUROSHARD_IO_PLAN_JSON_H

#include "base/json.h"
#include "core/plan.h"

/*
 * Reader and writer of plan.json, the file format of struct plan.
 * neuroshard-plan(5) specifies the format. A plan file is self-contained: no
 * other file is needed to use it.
 */

/* Parses a plan and checks it (plan_check). A hand-made plan must have:
 *   batch
 *   cluster  gpus, memory_bytes
 *   tables   name, num_embeddings, dim, pooling_factor
 *   shards
 * Any other member that is missing or null has its default. Unknown members are
 * ignored. If kinds of shards are missing, they follow from the geometry.
 * Without `devices` the plan has no costs: plan->devices is NULL, total_ms and
 * bound_ms are NAN. Shards are sorted, together with their shard_ms. Everything
 * lives in the arena. Errors: ERR_INPUT, or ERR_NO_PLAN if the plan does not
 * fit its memory; the message begins with `source`. */
int plan_from_json(struct plan *plan, const char *text, size_t len,
                   const char *source, struct arena *arena,
                   struct err *err) MUST_CHECK;
/* Reads a file with plan_from_json; "-" is standard input. */
int plan_load(struct plan *plan, const char *path, struct arena *arena,
              struct err *err) MUST_CHECK;

/* Returns the text of the whole file, in the arena: one line per table, shard
 * and device. Equal plans give equal bytes. Reading the text back gives an
 * equal plan, to the last bit. The plan must have passed plan_check. */
const char *plan_to_json(const struct plan *plan, struct arena *arena);
/* Returns the file's content as a JSON document, which the caller decrefs. */
json_t *plan_document(const struct plan *plan);
/* Checks the plan and writes it atomically; "-" is standard output. The new
 * file is read back before it replaces the old one. */
int plan_save(const struct plan *plan, const char *path,
              struct err *err) MUST_CHECK;

#endif
