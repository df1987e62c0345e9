/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include "base/clock.h"
#include "base/file.h"

#include <inttypes.h>
#include <stdlib.h>

#define RETRY_MS 5
#define APPLICATION_ID "0x4e534831" /* as in data/schema.sql */
FILE_TEXT(store_schema_sql, "data/schema.sql");

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

/* Whose database this is; version 0: nothing is in it yet. */
static int read_version(struct store *store, int64_t *version, struct err *err)
{
    struct buf answer = {0};
    const int rc = store_ask(
        store,
        "SELECT CASE WHEN application_id = " APPLICATION_ID " THEN user_version"
        " WHEN application_id OR user_version OR EXISTS "
        "(SELECT 1 FROM sqlite_schema) THEN 'another' ELSE '' END "
        "FROM pragma_application_id, pragma_user_version",
        &answer, err);
    const char first = *answer.data;

    *version = strtoll(answer.data, NULL, 10);
    buf_release(&answer);
    if (rc || !first)
        return rc;
    if (first == 'a')
        return err_input(
            err, "'%s' is a database of another program, not a cost database",
            store->path);
    if (*version < STORE_OLDEST_VERSION || *version > STORE_VERSION)
        return err_input(err,
                         "cost database '%s' has schema version %" PRId64
                         ", this program reads versions %d to %d: use the "
                         "neuroshard that made it, or a new file",
                         store->path, *version, STORE_OLDEST_VERSION,
                         STORE_VERSION);
    return 0;
}

const char *const store_tables[] = {"setting",      "sample",  "sample_table",
                                    "comm_sample",  "ceiling", "canary",
                                    "training_log", NULL};

static bool has_table(const struct store *store, const char *table)
{
    return !sqlite3_table_column_metadata(store->db, NULL, table, NULL, NULL,
                                          NULL, NULL, NULL, NULL);
}

/* Each row must be one that the new table takes: or the upgrade would fail
 * without saying which it was. */
int store_check_table(struct store *store, const char *table, struct err *err)
{
    struct buf sql = {0};
    struct query query = {.store = store};
    bool has_row = true;
    int rc;

    buf_printf(&sql, "SELECT * FROM %s", table);
    rc = store_check(
        store, sqlite3_prepare_v2(store->db, sql.data, -1, &query.stmt, NULL),
        err);
    if (!rc)
        row_reader_init(&query.reader, table, query.stmt);
    while (!rc && has_row)
        rc = query_step(&query, &has_row, err);
    sqlite3_finalize(query.stmt);
    buf_release(&sql);
    return rc;
}

/* Statements that move the rows of each old_TABLE to the new one, column by
 * column; what the old one lacks gets its default. */
static const char moves_sql[] =
    "SELECT coalesce(group_concat(printf('INSERT INTO %s (%s) SELECT %s FROM "
    "old_%s;', name, columns, columns, name), ''), '') FROM (SELECT new.name, "
    "group_concat(printf('\"%w\"', old.name), ', ') AS columns "
    "FROM sqlite_schema AS new JOIN pragma_table_info('old_' || new.name) AS "
    "old WHERE new.type = 'table' AND new.rowid >= (SELECT rowid FROM "
    "sqlite_schema WHERE name = 'setting') GROUP BY new.name "
    "ORDER BY new.rowid)";

/* The old tables step aside, data/schema.sql makes today's, and the rows move
 * over: one schema, and one way to it from any version. */
static int upgrade(struct store *store, struct err *err)
{
    struct buf sql = {0};
    int rc = 0;

    for (size_t i = 0; !rc && i < STORE_N_TABLES; i++) {
        if (!has_table(store, store_tables[i]))
            continue;
        rc = store_check_table(store, store_tables[i], err);
        buf_printf(&sql, "ALTER TABLE %s RENAME TO old_%s;", store_tables[i],
                   store_tables[i]);
    }
    buf_printf(&sql, "%s", store_schema_sql);
    rc = rc || store_execute(store, sql.data, err) ||
         store_ask(store, moves_sql, &sql, err);
    for (size_t i = STORE_N_TABLES; i-- > 0;)
        buf_printf(&sql, "DROP TABLE IF EXISTS old_%s;", store_tables[i]);
    rc = rc || store_execute(store, sql.data, err);
    buf_release(&sql);
    return rc ? -1 : 0;
}

/* Makes or upgrades the schema. Another process may be doing the same: who
 * gets the lock first wins, the other one finds it done. */
static int bring_up_to_date(struct store *store, struct err *err)
{
    int64_t version;
    int rc;

    if (store_begin(store, STORE_WRITE, err))
        return -1;
    rc = read_version(store, &version, err) ||
         (version != STORE_VERSION &&
          (version ? upgrade(store, err)
                   : store_execute(store, store_schema_sql, err))) ||
         read_version(store, &version, err);
    return store_end(store, rc, err);
}

/* A reader of an old file reads a copy of it in memory, which is upgraded;
 * nothing on the disk changes. */
static int read_upgraded_copy(struct store *store, struct err *err)
{
    sqlite3 *copy = NULL;
    const int status = sqlite3_open_v2(
        ":memory:", &copy,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

    if (store_check(store, status, err) ||
        store_copy(copy, "main", store, err)) {
        sqlite3_close(copy);
        return -1;
    }
    sqlite3_close(store->db);
    store->db = copy;
    if (store_defend(store, err) || bring_up_to_date(store, err))
        return -1;
    return store_execute(store, "PRAGMA query_only = ON", err);
}

/* SQLite does not wait where two that read the file both want to change how it
 * is logged; after the statement each has let go. */
static int use_wal(struct store *store, struct err *err)
{
    double end_ms = clock_ms() + STORE_BUSY_TIMEOUT_MS;
    int status;

    while ((status = sqlite3_exec(store->db, "PRAGMA journal_mode = WAL", NULL,
                                  NULL, NULL)) == SQLITE_BUSY &&
           clock_ms() < end_ms)
        sqlite3_sleep(RETRY_MS);
    return store_check(store, status, err);
}

int store_prepare(struct store *store, struct err *err)
{
    int64_t version;

    if (read_version(store, &version, err))
        return -1;
    store->version = version;
    if (store->mode == STORE_READ) {
        if (!version)
            return err_input(err, "'%s' is empty, not a cost database",
                             store->path);
        return version == STORE_VERSION ? 0 : read_upgraded_copy(store, err);
    }
    if (sqlite3_db_readonly(store->db, "main") == 1)
        return err_set(err, ERR_IO, "cannot write '%s': the file is read-only",
                       store->path);
    if (use_wal(store, err) ||
        store_execute(store, "PRAGMA synchronous = FULL", err))
        return -1;
    return version == STORE_VERSION ? 0 : bring_up_to_date(store, err);
}
