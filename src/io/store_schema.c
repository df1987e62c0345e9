/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include <inttypes.h>

#define APPLICATION_ID 0x4e534831 /* as in data/schema.sql */
/* Versions that data/schema_upgrade.sql starts from. */
#define OLD_VERSION 1

/* Each file ends in a NUL here. */
__asm__(".pushsection .rodata\n"
        ".global store_schema_sql\n"
        ".hidden store_schema_sql\n"
        "store_schema_sql:\n"
        ".incbin \"data/schema.sql\"\n"
        ".byte 0\n"
        ".global store_upgrade_sql\n"
        ".hidden store_upgrade_sql\n"
        "store_upgrade_sql:\n"
        ".incbin \"data/schema_upgrade.sql\"\n"
        ".byte 0\n"
        ".popsection\n");

/* The integer that a statement without values answers. */
static int ask_i64(struct store *store, const char *sql, int64_t *value,
                   struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int status, rc = -1;

    if (store_check(store, sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL),
                    err))
        goto out;
    status = sqlite3_step(stmt);
    if (store_check(store, status, err))
        goto out;
    *value = status == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    rc = 0;
out:
    sqlite3_finalize(stmt);
    return rc;
}

/* Whose database this is; version 0: nothing is in it yet. */
static int read_version(struct store *store, int64_t *version, struct err *err)
{
    int64_t application_id, n_objects;

    if (ask_i64(store, "SELECT count(*) FROM sqlite_schema", &n_objects, err) ||
        ask_i64(store, "PRAGMA application_id", &application_id, err) ||
        ask_i64(store, "PRAGMA user_version", version, err))
        return -1;
    if (!n_objects && !application_id && !*version)
        return 0;
    if (application_id != APPLICATION_ID)
        return err_set(err, ERR_INPUT,
                       "'%s' is a database of another program, not a cost "
                       "database",
                       store->path);
    if (*version != STORE_VERSION && *version != OLD_VERSION)
        return err_set(err, ERR_INPUT,
                       "cost database '%s' has schema version %" PRId64
                       ", this program reads versions %d and %d: use the "
                       "neuroshard that made it, or a new file",
                       store->path, *version, OLD_VERSION, STORE_VERSION);
    return 0;
}

/* Makes or upgrades the schema. Another process may be doing the same: who
 * gets the lock first wins, the other one finds it done. */
static int bring_up_to_date(struct store *store, struct err *err)
{
    int64_t version;
    int rc = -1;

    if (store_begin(store, STORE_WRITE, err))
        return -1;
    if (read_version(store, &version, err))
        goto out;
    if (version != STORE_VERSION &&
        store_execute(store, version ? store_upgrade_sql : store_schema_sql,
                      err))
        goto out;
    rc = read_version(store, &version, err);
out:
    return store_end(store, rc, err);
}

/* A reader of an old file reads a copy of it in memory, which is upgraded;
 * nothing on the disk changes. */
static int read_upgraded_copy(struct store *store, struct err *err)
{
    sqlite3_backup *backup;
    sqlite3 *copy = NULL;
    int status;

    status = sqlite3_open_v2(
        ":memory:", &copy,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    backup =
        status ? NULL : sqlite3_backup_init(copy, "main", store->db, "main");
    if (backup) {
        sqlite3_backup_step(backup, -1);
        status = sqlite3_backup_finish(backup);
    } else if (!status) {
        status = sqlite3_errcode(copy);
    }
    if (status) {
        sqlite3_close(copy);
        return store_check(store, status, err);
    }
    sqlite3_close(store->db);
    store->db = copy;
    if (store_defend(store, err))
        return -1;
    if (bring_up_to_date(store, err))
        return -1;
    return store_execute(store, "PRAGMA query_only = ON", err);
}

int store_prepare(struct store *store, struct err *err)
{
    int64_t version;

    if (read_version(store, &version, err))
        return -1;
    if (store->mode == STORE_READ) {
        if (!version)
            return err_set(err, ERR_INPUT, "'%s' is empty, not a cost database",
                           store->path);
        return version == STORE_VERSION ? 0 : read_upgraded_copy(store, err);
    }
    if (sqlite3_db_readonly(store->db, "main") == 1)
        return err_set(err, ERR_IO, "cannot write '%s': the file is read-only",
                       store->path);
    if (store_execute(store, "PRAGMA journal_mode = WAL", err) ||
        store_execute(store, "PRAGMA synchronous = FULL", err))
        return -1;
    return version == STORE_VERSION ? 0 : bring_up_to_date(store, err);
}
