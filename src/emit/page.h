/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_PAGE_H
#define NEUROSHARD_EMIT_PAGE_H

#include "base/json.h"
#include "core/plan.h"

/*
 * The HTML page that `report` writes. data/report is the page without
 * documents; it draws the documents that are put into it: {neuroshard_report,
 * version, documents: [{file, kind, content, found}]}. The content of a
 * document is a plan file or the output of a command with --json.
 */

/* Returns the kind of a document by its members: "plan", "compare", "range",
 * "diff", "run", "record", "eval" or "trace". NULL if the page cannot draw
 * it. */
const char *page_kind(const json_t *content);
/* All kinds in one phrase. */
#define PAGE_KINDS                                                            \
    "a plan, nor what compare, diff, eval, record, run or plan over a range " \
    "print with --json, nor a trace of plan"

/* Replaces the shards in a plan's content by `pieces` {table, kind, n, device,
 * row_begin, row_end, col_begin, col_end, standalone_ms}. A run of at least 4
 * similar shards of a table becomes one piece; any other shard is a piece with
 * n = 1.
 *   n                   number of shards
 *   device              the first one; the others are on the devices after it
 *   col_begin, col_end  the same for all shards
 *   row_begin, row_end  all rows together, in consecutive row blocks; for
 *                       replicas, the rows of each
 *   standalone_ms            sum over the shards */
void page_fold_shards(json_t *content, const struct plan *plan);

/* Prints the page with a list of documents, each {file, kind, content ...}. */
void page_print(json_t *documents, struct buf *out);

#endif
