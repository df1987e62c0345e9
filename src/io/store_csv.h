/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_CSV_H
#define NEUROSHARD_IO_STORE_CSV_H

#include "io/store.h"

/*
 * A cost database as text, with nothing lost: neuroshard-costs(5) has the
 * format.
 */
int store_to_csv(struct buf *out, struct store *store,
                 struct err *err) MUST_CHECK;
/* A database in memory; messages call it by the source. ERR_INPUT names the
 * line, and of what is wrong with several lines together table and row. */
int store_from_csv(struct store **out, const char *text, size_t len,
                   const char *source, struct arena *arena,
                   struct err *err) MUST_CHECK;
/* Whether that can be done (a file_check). */
int store_csv_check(const char *text, size_t len, const char *source,
                    struct arena *arena, struct err *err) MUST_CHECK;
/* Hash of the text of a database from store_sorted: what it holds, and no more.
 */
int store_hash(uint64_t *hash, struct store *sorted,
               struct err *err) MUST_CHECK;

#endif
