/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_MERGE_H
#define NEUROSHARD_IO_STORE_MERGE_H

#include "base/file.h"
#include "io/store.h"

#include <jansson.h>

/*
 * Merging of cost databases. Rows with the same key are kept once:
 *   sample           the undisturbed one, then the one that began first
 *   exchange, probe  the one with the shorter time
 *   ceiling          the undisturbed one, then the one with the shorter time
 *
 * Ties go to the row whose other columns are smaller. A probe here is an
 * interference probe (table canary). The key of a verdict is all of its
 * columns.
 *
 * So the result depends neither on the order of merging nor on databases that
 * are merged twice. Settings that differ in any column stay separate.
 */

/* Checks a whole database. ERR_INPUT names the first fault: a damaged page, a
 * reference to a missing row, a value out of range, or a sample without its
 * tables. */
int store_verify(struct store *store, struct err *err) MUST_CHECK;
/* Adds all rows of `from` to `into` in one transaction. `from` must have passed
 * store_verify. */
int store_merge(struct store *into, struct store *from,
                struct err *err) MUST_CHECK;
/* Makes a verified copy in memory. Its rows are in the order of their keys, and
 * their ids count from 1, so databases with equal content give equal copies.
 * Fails also if this program's schema does not accept a row. */
int store_sorted(struct store **out, struct store *from,
                 struct err *err) MUST_CHECK;
/* Writes the database as a file, with file_write. */
int store_save(struct store *store, const char *path,
               struct err *err) MUST_CHECK;

/* Summarizes a verified database: counts, also by machine, and the schema
 * version of the file. neuroshard-db(1) and data/output.schema.json describe
 * the members. Texts are as in the file. The caller decrefs *out. */
int store_describe(json_t **out, struct store *store,
                   struct err *err) MUST_CHECK;

/*
 * Prints a cost database as text, without loss. neuroshard-costs(5) describes
 * the format.
 */
int store_to_csv(struct buf *out, struct store *store,
                 struct err *err) MUST_CHECK;
/* Prints the samples as text, one line each. This is small enough to archive if
 * the database is too large: tables are reduced to their sums, and times have
 * six digits. It cannot be used for training. Fails if store_verify does. */
int store_samples_to_csv(struct buf *out, struct store *store,
                         struct err *err) MUST_CHECK;
/* Reads store_to_csv's text into a database in memory. Messages call it
 * `source`. ERR_INPUT names the line; faults that involve several lines name
 * the table and the row. */
int store_from_csv(struct store **out, const char *text, size_t len,
                   const char *source, struct arena *arena,
                   struct err *err) MUST_CHECK;
/* Checks that store_from_csv accepts a text (a file_check). */
file_check store_csv_check MUST_CHECK;
/* Hashes the text of a database from store_sorted. The hash depends on the
 * content only. */
int store_hash(uint64_t *hash, struct store *sorted,
               struct err *err) MUST_CHECK;

#endif
