/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_PAGE_H
#define NEUROSHARD_EMIT_PAGE_H

#include "base/json.h"
#include "core/plan.h"

/*
 * The HTML page that `report` writes.
 *
 * The file data/report is the page without documents. Its script draws the
 * documents that replace the placeholder: {neuroshard_report, version,
 * documents: [{file, kind, content, found}]}. A document's content is a plan
 * file, or the output of a command that ran with --json.
 */

/* Returns the kind of a document, which it recognises by its members: "plan",
 * "compare", "range", "diff", "run", "record", "eval" or "trace". Returns NULL
 * if the page cannot draw the document. */
const char *page_kind(const json_t *content);
/* Names of all kinds of documents, as one phrase for messages. */
#define PAGE_KINDS                                                           \
    "a plan, nor --json output of compare, diff, eval, record, run or plan " \
    "over a range, nor a trace of plan"

/*
 * Replaces the shards in a plan's content by `pieces`, a list of {table, kind,
 * n, device, row_begin, row_end, col_begin, col_end, standalone_ms}. A run of
 * at least 4 similar shards of a table becomes one piece. Every other shard
 * becomes a piece with n = 1. Members of a piece:
 *
 *   n                   number of shards
 *   device              device of the first shard; the other shards are on the
 *                       devices after it
 *   col_begin, col_end  columns, which are the same for all shards
 *   row_begin, row_end  rows of all shards together, which are consecutive row
 *                       blocks; for replicas, the rows of one replica
 *   standalone_ms       sum of the standalone costs of the shards
 */
void page_fold_shards(json_t *content, const struct plan *plan);

/* Prints the page with a list of documents, each of the form {file, kind,
 * content ...}. */
void page_print(json_t *documents, struct buf *out);

#endif
