/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_JSON_WRITE_H
#define NEUROSHARD_IO_PLAN_JSON_WRITE_H

#include "base/json.h"
#include "core/plan.h"

/* Writer of plan.json (io/plan_json.h). */

/* Returns the text of a plan file, in the arena. Each table, shard and device
 * has a line of its own. Equal plans give equal bytes. Reading the text back
 * gives a plan that is equal to the last bit. The plan must have passed
 * plan_check. */
const char *plan_to_json(const struct plan *plan, struct arena *arena);
/* Returns the content of the plan file as a JSON document, which the caller
 * decrefs. */
json_t *plan_document(const struct plan *plan);
/* Returns the text of such a document, laid out as a plan file, in the arena.
 * Takes the reference to the document. */
const char *plan_document_text(json_t *root, struct arena *arena);
/* Checks the plan and writes it atomically to the file `path`. The path "-" is
 * standard output. The values are read by the reader before they are written,
 * and the new file is compared with its text before it replaces the old one. */
int plan_save(const struct plan *plan, const char *path,
              struct err *err) MUST_CHECK;

#endif
