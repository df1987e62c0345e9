/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_CSV_H
#define NEUROSHARD_IO_STORE_CSV_H

#include "base/file_write.h"
#include "io/store.h"

/* Cost databases as text. */

/* Prints a cost database as text, without loss. neuroshard-costs(5) describes
 * the format. */
int store_to_csv(struct buf *out, struct store *store,
                 struct err *err) MUST_CHECK;
/* Prints the samples as text, one line each. The text is small enough to
 * archive even if the database is too large: tables are reduced to their sums,
 * and times have six digits. The text cannot be used for training. Fails if
 * store_verify does. */
int store_samples_to_csv(struct buf *out, struct store *store,
                         struct err *err) MUST_CHECK;
/* Reads a text that store_to_csv printed into a database in memory. `source` is
 * the database's name in messages. ERR_INPUT messages name the line. If a fault
 * involves several lines, the message names the table and the row instead. */
int store_from_csv(struct store **out, const char *text, size_t len,
                   const char *source, struct arena *arena,
                   struct err *err) MUST_CHECK;
/* Checks that store_from_csv accepts a text. It has the type file_check, so
 * that file writers can call it. */
file_check store_csv_check MUST_CHECK;
/* Hashes the text of a database that store_sorted made. The hash depends on the
 * content of the database only. */
int store_hash(uint64_t *hash, struct store *sorted,
               struct err *err) MUST_CHECK;

#endif
