/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_H
#define NEUROSHARD_IO_STORE_H

#include "base/mem.h"

/*
 * The cost database: one SQLite file (WAL) that holds all measurements.
 * data/schema.sql is its schema.
 *
 * Each sample is stored in one transaction. A sample that the sink has
 * acknowledged survives a kill at any moment. The columns (setting, seed, case,
 * kind, part) are unique, so no sample is stored twice. Several processes may
 * have the same file open.
 *
 * The functions of this header return these errors:
 *   ERR_IO     the file cannot be opened, locked (after 10 s), read or written;
 *              also if the disk is full
 *   ERR_INPUT  the file is damaged, or a row that a list contains has a field
 * out of range. The message names the table, the row and the field.
 */
struct store; /* opaque */

/* Schema version, stored as SQLite's user_version. If an older file is opened
 * for writing, it is upgraded in one transaction. If it is opened for reading,
 * the reader gets an upgraded copy in memory, which shows the file at the
 * moment of opening. Files with a version outside of this range are refused. */
#define STORE_VERSION 6
#define STORE_OLDEST_VERSION 1

/* STORE_WRITE creates the file if it does not exist */
enum store_mode { STORE_READ, STORE_WRITE };
/* Opens a database. Reads and checks all of its pages once. If a killed writer
 * left a change half done, the change is rolled back first, even in STORE_READ
 * mode. The rollback fails with ERR_IO if the file or its folder is
 * read-only. */
/* Returns ERR_INPUT if the file is not a database, belongs to another program
 * or has an unsupported schema version. */
int store_open(struct store **out, const char *path, enum store_mode mode,
               struct err *err) MUST_CHECK;
/* Creates an empty database in memory. `source` is its name in messages. */
int store_open_memory(struct store **out, const char *source,
                      struct err *err) MUST_CHECK;
/* Closes the database; `store` may be NULL. The last writer that closes a file
 * leaves it as a single plain file, without a WAL. */
void store_close(struct store *store);

#endif
