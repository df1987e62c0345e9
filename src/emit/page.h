/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_PAGE_H
#define NEUROSHARD_EMIT_PAGE_H

#include "base/json.h"
#include "core/plan.h"

/*
 * The page that `report` writes: that of data/report, which draws what it
 * holds, with documents in it: {neuroshard_report, version, documents: [{file,
 * kind, content, found}]}. A document's content is a plan file or what a
 * command printed with --json.
 */

/* "plan", "compare", "range", "diff", "run", "record", "eval" or "trace": what
 * a document is by its members; NULL where it is nothing that the page draws.
 */
const char *page_kind(const json_t *content);
/* All kinds in one phrase. */
#define PAGE_KINDS                                                            \
    "a plan, nor what compare, diff, eval, record, run or plan over a range " \
    "print with --json, nor a trace of plan"

/* Puts in a plan's content, in place of its shards, `pieces` {table, kind, n,
 * device, row_begin, row_end, col_begin, col_end, alone_ms}: n shards of a
 * table, of the same columns, on `device` and those behind it, where more than
 * a few share one. Their rows are those named, one block behind the other, of
 * replicas those of each; alone_ms is their sum. */
void page_fold_shards(json_t *content, const struct plan *plan);

/* The page with a list of documents, each {file, kind, content ...}, inside. */
void page_print(json_t *documents, struct buf *out);

#endif
