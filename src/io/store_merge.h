/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_MERGE_H
#define NEUROSHARD_IO_STORE_MERGE_H

#include "base/file.h"
#include "io/store.h"

#include <jansson.h>

/*
 * Cost databases put together. What has the same key in both is there once:
 * of a sample the undisturbed one, then that which was begun first; of an
 * exchange and a canary the shorter time, of a ceiling too, after the
 * undisturbed; then what is less in its other columns. A verdict is all of its
 * columns. So the result does not depend on the order, nor on what is merged
 * twice. Settings that differ in anything stay apart.
 */

/* ERR_INPUT for the first fault: pages of the file, references to nothing,
 * values out of their range, a sample without its tables. */
int store_verify(struct store *store, struct err *err) MUST_CHECK;
/* Adds what `from` holds, in one transaction; `from` was verified. */
int store_merge(struct store *into, struct store *from,
                struct err *err) MUST_CHECK;
/* A verified copy in memory whose rows stand in the order of their keys and
 * count from 1: databases of the same content are alike. Also fails for what
 * the schema of this program does not take. */
int store_sorted(struct store **out, struct store *from,
                 struct err *err) MUST_CHECK;
/* Writes it as a file, by file_write. */
int store_save(struct store *store, const char *path,
               struct err *err) MUST_CHECK;

/* What one that was verified holds: counts, by machine too, and the version of
 * the schema as the file has it; neuroshard-db(1) and data/output.schema.json
 * have the members. Texts are as they stand in the file. The caller decrefs. */
int store_describe(json_t **out, struct store *store,
                   struct err *err) MUST_CHECK;

/*
 * A cost database as text, with nothing lost: neuroshard-costs(5) has the
 * format.
 */
int store_to_csv(struct buf *out, struct store *store,
                 struct err *err) MUST_CHECK;
/* Its samples as text, a line each, small enough to be kept where a database is
 * too large: tables as their sums, times with six digits. Nothing learns from
 * it. As store_verify fails. */
int store_samples_to_csv(struct buf *out, struct store *store,
                         struct err *err) MUST_CHECK;
/* A database in memory; messages call it by the source. ERR_INPUT names the
 * line, and of what is wrong with several lines together table and row. */
int store_from_csv(struct store **out, const char *text, size_t len,
                   const char *source, struct arena *arena,
                   struct err *err) MUST_CHECK;
/* Whether that can be done (a file_check). */
file_check store_csv_check MUST_CHECK;
/* Hash of the text of a database from store_sorted: what it holds, and no more.
 */
int store_hash(uint64_t *hash, struct store *sorted,
               struct err *err) MUST_CHECK;

#endif
