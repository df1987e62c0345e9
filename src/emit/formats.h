/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_FORMATS_H
#define NEUROSHARD_EMIT_FORMATS_H

#include "base/file_write.h"
#include "base/json.h"
#include "core/plan.h"

/*
 * Writers of plans in the formats of training frameworks. Each plan must have
 * passed plan_check, and its shards must be sorted.
 */

/* Fully qualified name of the module that holds DLRM's tables, inside
 * DLRMTrain. */
#define EMIT_DEFAULT_MODULE "model.sparse_arch.embedding_bag_collection"

/* Path of the module with tables of sequence output, in plans for torchrec-ec.
 */
#define EMIT_DEFAULT_SEQUENCE_MODULE "model.sparse_arch.embedding_collection"

/* Options of all formats. Zeroed options are the defaults. The options do not
 * own their strings. */
struct emit_options {
    /* torchrec: name of the module that holds the tables; NULL:
     * EMIT_DEFAULT_MODULE */
    const char *module;
    /* torchrec: name of the module for tables with sequence output. NULL:
     * EMIT_DEFAULT_SEQUENCE_MODULE if the plan's target is torchrec-ec;
     * otherwise `module`, which then must not hold pooled tables as well. */
    const char *sequence_module;
    /* torchrec: prefix of each table name; NULL: no prefix */
    const char *prefix;
    /* hugectr: "uniform" or "hierarchical"; NULL: uniform */
    const char *comm;
};

struct emitter {
    /* Appends the plan as text to `out`. Fails with ERR_INPUT if the format
     * cannot express a property of the plan; the message names the property,
     * and the caller discards the text appended so far. */
    int (*emit)(const struct plan *plan, const struct emit_options *options,
                struct buf *out, struct err *err);
    /* checks that the text is well-formed; NULL if there is no check */
    file_check *check;
};

/*
 * List of all formats, in the order of --help. Each line is FORMAT(NAME,
 * "NAME"), and the file of the framework defines a `const struct emitter
 * emit_NAME`.
 */
#define EMIT_FORMATS(FORMAT)                             \
    FORMAT(torchrec, "torchrec")                         \
    FORMAT(torchrec_loader, "torchrec-loader")           \
    FORMAT(torchrec_constraints, "torchrec-constraints") \
    FORMAT(dlrm, "dlrm")                                 \
    FORMAT(hugectr, "hugectr")                           \
    FORMAT(text, "text")

#define EMIT_DECLARE(name, text) extern const struct emitter emit_##name;
EMIT_FORMATS(EMIT_DECLARE)
extern const struct emitter *const emit_formats[]; /* [number of formats] */

/* Names of all formats as one string: "torchrec|torchrec-loader|..." */
#define EMIT_CHOICE(name, text) "|" text
#define EMIT_FORMAT_NAMES (&(EMIT_FORMATS(EMIT_CHOICE))[1])

/* Refuses a plan of several sharding groups. `format` is the format that has
 * none. */
int emit_one_group(const struct problem *problem, const char *format,
                   struct err *err) MUST_CHECK;

/* Checks that a text is JSON (has the type file_check). */
file_check emit_check_json MUST_CHECK;

/* Returns the index after a table's last shard; `begin` is the index of its
 * first shard. */
size_t emit_shards_end(const struct plan *plan, size_t begin);

#endif
