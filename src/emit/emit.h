/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_EMIT_H
#define NEUROSHARD_EMIT_EMIT_H

#include "base/file.h"
#include "core/plan.h"
#include "emit/compare_table.h"

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

/* What a report has besides the plan. Zeroed: nothing of it. */
struct report_options {
    size_t n_columns; /* that lines may have; 0: 80, more than 1000: all that
                         there is to say */
    bool waits;       /* what priced it has GPUs wait for each other */
    const double *without_ms; /* [n_tables]: the step without each; or NULL */
    double plain_ms; /* the step if the job did not de-duplicate ids; NAN or 0:
                        not known */
    const struct compare_entry *rivals; /* [n_rivals]: paired with the plan, of
                                           names as "TorchRec's planner" */
    size_t n_rivals;
};

/* The report a person reads first, of a plan that is priced: how long the step
 * is and what it is worth, what binds it and what was assumed; then phases and
 * memory by GPU, and the tables that matter. Ends in a newline. Tables keep to
 * the columns there are; lines of words are to be wrapped (text_wrap_lines). */
void emit_report(const struct plan *plan, const struct report_options *options,
                 struct buf *out);

#endif
