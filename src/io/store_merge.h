/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_MERGE_H
#define NEUROSHARD_IO_STORE_MERGE_H

#include "base/err.h"
#include "io/store.h"

#include <jansson.h>

/*
 * Merging of cost databases. If several rows have the same key, only one of
 * them is kept. The table shows which row is preferred:
 *   sample    first an undisturbed row, second the row that began first
 *   exchange  the row with the shorter time
 *   probe     the row with the shorter time
 *   ceiling   first an undisturbed row, second the row with the shorter time
 *   product   first an undisturbed row, second the row with the shorter time
 *
 * In case of a tie, the row whose other columns are smaller is kept. "probe"
 * here is an interference probe (table canary). The key of a verdict (table
 * training_log) consists of all its columns.
 *
 * As a result, merging gives the same rows in any order of the databases, and
 * also if a database is merged twice. Settings that differ in any column stay
 * separate.
 */

/* Checks a whole database. The ERR_INPUT message names the first fault: a
 * damaged page, a reference to a missing row, a value out of range, or a sample
 * that lacks some of its tables. */
int store_verify(struct store *store, struct err *err) MUST_CHECK;
/* Adds all rows of `from` to `into` in one transaction. `from` must have passed
 * store_verify. */
int store_merge(struct store *into, struct store *from,
                struct err *err) MUST_CHECK;
/* Makes a verified copy of a database in memory. The rows of the copy are in
 * the order of their keys, and their ids count from 1, so databases with equal
 * content give equal copies. The function also fails if this program's schema
 * does not accept a row. */
int store_sorted(struct store **out, struct store *from,
                 struct err *err) MUST_CHECK;
/* Writes the database to the file `path`, by means of file_write. */
int store_save(struct store *store, const char *path,
               struct err *err) MUST_CHECK;

/* Summarizes a verified database: counts for the whole database and for each
 * machine, and the schema version of the file. neuroshard-db(1) and
 * data/output.schema.json describe the members. Texts are copied from the file
 * unchanged. The caller decrefs *out. */
int store_describe(json_t **out, struct store *store,
                   struct err *err) MUST_CHECK;

#endif
