/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_JSON_H
#define NEUROSHARD_IO_PLAN_JSON_H

#include "base/json_lists.h"
#include "core/plan.h"

/*
 * Reader of plan.json, the file format of struct plan.
 * neuroshard-plan(5) specifies the format. A plan file is self-contained: it
 * can be used without any other file.
 */

/* Parses a plan and checks it with plan_check. A plan that was written by hand
 * must have these members:
 *   batch
 *   cluster  gpus, memory_bytes
 *   tables   name, num_embeddings, dim, pooling_factor
 *   shards
 * Any other member that is missing or null has its default. Unknown members are
 * ignored. If the kinds of the shards are missing, they are derived from the
 * shards' rows and columns. A plan without `devices` has no costs:
 * plan->devices is NULL, total_ms and bound_ms are NAN. The shards are sorted,
 * together with their shard_ms. The plan's arrays and strings live in the
 * arena. Errors: ERR_INPUT, or ERR_NO_PLAN if the plan does not fit its memory.
 * Messages begin with `source`. */
int plan_from_json(struct plan *plan, const char *text, size_t len,
                   const char *source, struct arena *arena,
                   struct err *err) MUST_CHECK;
/* The lists of a plan that may be long. */
enum { PLAN_TABLES, PLAN_SHARDS, PLAN_N_LISTS };
/* Reads a plan by the rules of plan_from_json from a document and its long
 * lists. Releases the lists. */
int plan_from_document(struct plan *plan, const json_t *root,
                       struct json_list lists[PLAN_N_LISTS], const char *source,
                       struct arena *arena, struct err *err) MUST_CHECK;
/* Reads the plan file `path` with plan_from_json. The path "-" is standard
 * input. */
int plan_load(struct plan *plan, const char *path, struct arena *arena,
              struct err *err) MUST_CHECK;

#endif
