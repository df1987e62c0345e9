/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_FORMATS_H
#define NEUROSHARD_EMIT_FORMATS_H

#include "base/file.h"
#include "base/json.h"
#include "core/plan.h"

/*
 * A plan in the words of a framework. Plans come here judged (plan_check), with
 * their shards in order.
 */

/* The fully qualified name of DLRM's tables inside DLRMTrain. */
#define EMIT_DEFAULT_MODULE "model.sparse_arch.embedding_bag_collection"

/* Zeroed: all defaults. Strings are not owned. */
struct emit_options {
    const char *module; /* torchrec: name of the module that holds the tables;
                           NULL: EMIT_DEFAULT_MODULE */
    const char *sequence_module; /* torchrec: the module of the tables whose
                                    output is a sequence; NULL: as `module`,
                                    which then may not hold pooled ones too */
    const char *prefix; /* torchrec: put in front of each table name; NULL "" */
};

struct emitter {
    /* Appends the text to out; ERR_INPUT says what the format cannot express,
     * and what was appended by then is to be thrown away. */
    int (*emit)(const struct plan *plan, const struct emit_options *options,
                struct buf *out, struct err *err);
    file_check *check; /* whether the text is well-formed; NULL: not known */
};

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
extern const struct emitter *const emit_formats[]; /* all of them */

/* "torchrec|torchrec-loader|..." */
#define EMIT_CHOICE(name, text) "|" text
#define EMIT_FORMAT_NAMES (&(EMIT_FORMATS(EMIT_CHOICE))[1])

/* Whether a text is JSON, for a file_check. */
file_check emit_check_json MUST_CHECK;

/* The end of table's shards, which begin at `begin`. */
size_t emit_shards_end(const struct plan *plan, size_t begin);

#endif
