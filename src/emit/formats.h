/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_FORMATS_H
#define NEUROSHARD_EMIT_FORMATS_H

#include "base/json.h"
#include "emit/emit.h"

/*
 * The formats, in the order of --help: one line each, as FORMAT(NAME, "NAME"),
 * of which the first names a `const struct emitter emit_NAME` in the file of
 * its framework. And what the formats share.
 */
#define EMIT_FORMATS(FORMAT)                             \
    FORMAT(torchrec, "torchrec")                         \
    FORMAT(torchrec_loader, "torchrec-loader")           \
    FORMAT(torchrec_constraints, "torchrec-constraints") \
    FORMAT(dlrm, "dlrm")                                 \
    FORMAT(text, "text")

#define EMIT_DECLARE(name, text) extern const struct emitter emit_##name;
EMIT_FORMATS(EMIT_DECLARE)

/* "torchrec|torchrec-loader|..." */
#define EMIT_CHOICE(name, text) "|" text
#define EMIT_FORMAT_NAMES (&(EMIT_FORMATS(EMIT_CHOICE))[1])

/* Appends a value, which it takes, as JSON in one line. */
void emit_json(struct buf *out, json_t *value);

/* Whether a text is JSON, for a file_check. */
file_check emit_check_json MUST_CHECK;

/* The end of table's shards, which begin at `begin`. */
size_t emit_shards_end(const struct plan *plan, size_t begin);

#endif
