/* SPDX-License-Identifier: MIT */
#include "io/store_sql.h"

#include <string.h>

bool store_is_half_changed(int status)
{
    return status == SQLITE_READONLY_ROLLBACK ||
           status == SQLITE_READONLY_RECOVERY ||
           status == SQLITE_READONLY_CANTINIT;
}

int store_check(const struct store *store, int status, struct err *err)
{
    int system_errno = sqlite3_system_errno(store->db);
    const char *reason = sqlite3_errmsg(store->db);

    if (store_is_half_changed(status))
        return err_set(
            err, ERR_IO,
            "cannot read '%s': a killed process left an unfinished change, and "
            "to undo it the file and its folder must be writable",
            store->path);
    switch (status & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_NOTADB:
        return err_input(err, "'%s' is not a SQLite database", store->path);
    case SQLITE_CORRUPT:
        return err_input(err, "database '%s' is damaged: %s", store->path,
                         reason);
    case SQLITE_CONSTRAINT:
        return err_input(err, "cost database '%s': %s", store->path, reason);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        reason = "another process holds its lock";
        break;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        if (system_errno)
            reason = strerror(system_errno);
        break;
    default:
        break;
    }
    return err_set(err, ERR_IO, "cannot access '%s': %s", store->path, reason);
}

int store_execute(struct store *store, const char *sql, struct err *err)
{
    return store_check(store, sqlite3_exec(store->db, sql, NULL, NULL, NULL),
                       err);
}

int store_begin_read(struct store *store, struct err *err)
{
    return store_execute(store, "BEGIN", err);
}

int store_begin_write(struct store *store, struct err *err)
{
    return store_execute(store, "BEGIN IMMEDIATE", err);
}

int store_end(struct store *store, int rc, struct err *err)
{
    if (!rc)
        rc = store_execute(store, "COMMIT", err);
    /* SQLite has already rolled back the transaction after some errors. */
    if (rc && !sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

int store_copy(sqlite3 *into, const char *name, struct store *from,
               struct err *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(into, name, from->db, "main");

    if (!backup)
        return store_check(from, sqlite3_errcode(into), err);
    sqlite3_backup_step(backup, -1);
    return store_check(from, sqlite3_backup_finish(backup), err);
}

int store_ask(struct store *store, const char *sql, struct buf *answer,
              struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int status = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);

    answer->len = 0;
    if (!status)
        status = sqlite3_step(stmt);
    buf_printf(answer, "%s",
               status == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0)
                                    : "");
    status = store_check(store, status, err);
    sqlite3_finalize(stmt);
    return status;
}
