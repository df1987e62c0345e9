/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_SQL_H
#define NEUROSHARD_IO_STORE_SQL_H

#include "base/mem.h"

#include <sqlite3.h>

/*
 * The connection to the SQLite file of a cost database, and statements without
 * parameters.
 */

struct statement; /* io/store_fields.h */
struct store_list;
struct store;

/* Time that SQLite waits for another process's lock on the file. */
#define STORE_BUSY_TIMEOUT_MS 10000

/* True if an SQLite status means that a killed writer left a change half done.
 * The change must be rolled back before the file can be read. A read-only
 * connection may not do this. */
bool store_is_half_changed(int status);
/* Converts a status of SQLite to our error codes. Returns 0 for SQLITE_OK, ROW
 * and DONE. For any other status sets err and returns -1. */
int store_check(const struct store *store, int status,
                struct err *err) MUST_CHECK;

int store_execute(struct store *store, const char *sql,
                  struct err *err) MUST_CHECK;
/* Copies the whole database `from` into the database called `name` of the
 * connection `into`. */
int store_copy(sqlite3 *into, const char *name, struct store *from,
               struct err *err) MUST_CHECK;

/* Runs a statement without parameters. Stores the first column of the first row
 * in `answer` as text, or "" if there are no rows. The column must not be
 * NULL. */
int store_ask(struct store *store, const char *sql, struct buf *answer,
              struct err *err) MUST_CHECK;

/* Three functions that begin and end a transaction. A writing transaction takes
 * the lock at once. A reading transaction sees a single snapshot. store_end
 * commits if rc is 0 and rolls back if rc is -1. It returns rc, or -1 if the
 * commit failed. */
int store_begin_read(struct store *store, struct err *err) MUST_CHECK;
int store_begin_write(struct store *store, struct err *err) MUST_CHECK;
int store_end(struct store *store, int rc, struct err *err) MUST_CHECK;

#define STORE_MAX_BOUND 4
#define MAX_PREPARED 24

struct store {
    /* the file; for a reader, it may be an upgraded copy of the file in
     * memory */
    sqlite3 *db;
    char *path;
    bool is_writer;  /* opened with STORE_WRITE */
    int64_t version; /* schema version when the file was opened */
    struct prepared {
        /* NULL in the entry behind the last one */
        const struct statement *statement;
        sqlite3_stmt *stmt;
        const struct store_list *bound[STORE_MAX_BOUND];
    } prepared[MAX_PREPARED];
};

#endif
