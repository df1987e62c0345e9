/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_FORMATS_H
#define NEUROSHARD_EMIT_FORMATS_H

#include "base/file.h"
#include "base/json.h"
#include "core/plan.h"

/*
 * Plans in the formats of training frameworks. Plans passed to this module have
 * passed plan_check, and their shards are sorted.
 */

/* Fully qualified name of the module of DLRM's tables inside DLRMTrain. */
#define EMIT_DEFAULT_MODULE "model.sparse_arch.embedding_bag_collection"

/* Options of all formats. Zeroed: all defaults. Strings are not owned. */
struct emit_options {
    /* torchrec: name of the module that holds the tables; NULL:
     * EMIT_DEFAULT_MODULE */
    const char *module;
    /* torchrec: module of the tables whose output is a sequence; NULL:
     * `module`, which then may not hold pooled tables, too */
    const char *sequence_module;
    const char *prefix; /* torchrec: prefix of each table name; NULL: "" */
};

struct emitter {
    /* Appends the text to out. ERR_INPUT names the property that the format
     * cannot express; the caller then discards the text appended so far. */
    int (*emit)(const struct plan *plan, const struct emit_options *options,
                struct buf *out, struct err *err);
    file_check *check; /* checks that the text is well-formed; NULL: no check */
};

/*
 * All formats, in the order of --help, and declarations that they share. A line
 * is FORMAT(NAME, "NAME"). NAME refers to a `const struct emitter emit_NAME` in
 * the file of its framework.
 */
#define EMIT_FORMATS(FORMAT)                             \
    FORMAT(torchrec, "torchrec")                         \
    FORMAT(torchrec_loader, "torchrec-loader")           \
    FORMAT(torchrec_constraints, "torchrec-constraints") \
    FORMAT(dlrm, "dlrm")                                 \
    FORMAT(text, "text")

#define EMIT_DECLARE(name, text) extern const struct emitter emit_##name;
EMIT_FORMATS(EMIT_DECLARE)
extern const struct emitter *const emit_formats[]; /* all formats */

/* "torchrec|torchrec-loader|..." */
#define EMIT_CHOICE(name, text) "|" text
#define EMIT_FORMAT_NAMES (&(EMIT_FORMATS(EMIT_CHOICE))[1])

/* Checks that a text is JSON (a file_check). */
file_check emit_check_json MUST_CHECK;

/* Returns the end of the shards of a table, which start at `begin`. */
size_t emit_shards_end(const struct plan *plan, size_t begin);

#endif
