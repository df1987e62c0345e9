/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_JSON_H
#define NEUROSHARD_IO_PLAN_JSON_H

#include "base/json.h"
#include "core/plan.h"

/*
 * plan.json <-> struct plan. The format is specified in neuroshard-plan(5); it
 * is self-contained, so whoever has the file needs nothing else.
 */

/* Parses and judges (plan_check). A hand-made plan must have batch, cluster
 * (gpus, memory_bytes), tables (name, num_embeddings, dim, pooling_factor) and
 * shards; whatever else is missing or null has its default, kinds of shards
 * come from the geometry, and without `devices` the plan is not priced:
 * plan->devices is NULL, total_ms and bound_ms are NAN. Unknown keys are
 * ignored. Shards are put in order, each with its shard_ms. Everything lives in
 * the arena. Codes: ERR_INPUT, or ERR_NO_PLAN where the plan does not fit its
 * memory; the sentence begins with `source`. */
int plan_from_json(struct plan *plan, const char *text, size_t len,
                   const char *source, struct arena *arena,
                   struct err *err) MUST_CHECK;
/* The same of a file; "-" is standard input. */
int plan_load(struct plan *plan, const char *path, struct arena *arena,
              struct err *err) MUST_CHECK;

/* The whole file's text, in the arena: one line a table, shard and device, and
 * the same bytes for the same plan. Reading it back gives the same plan to the
 * last bit. The plan must have passed plan_check. */
const char *plan_to_json(const struct plan *plan, struct arena *arena);
/* The same as a document, which the caller decrefs. */
json_t *plan_document(const struct plan *plan);
/* Judges, then writes atomically ("-" is standard output) and reads the file
 * back before it takes the old one's place. */
int plan_save(const struct plan *plan, const char *path,
              struct err *err) MUST_CHECK;

#endif
