/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_EMIT_H
#define NEUROSHARD_EMIT_EMIT_H

#include "base/file.h"
#include "core/plan.h"

/*
 * A plan in the words of a framework, or of a person. Plans come here judged
 * (plan_check), with their shards in order. A new format is one file with its
 * emitter and a line in emit/formats.h.
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
/* NULL where there is none of that name. */
const struct emitter *emit_format_find(const char *name);

/* The report a person reads first, of a plan that is priced: what was planned
 * and by which cost model, each GPU's times and memory, why the slowest is
 * slow, which tables cost most. Ends in a newline; at most 100 columns as long
 * as names allow. */
void emit_report(const struct plan *plan, struct buf *out);

#endif
