/* SPDX-License-Identifier: MIT */
#include "io/store.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/file_claims.h"
#include "io/store_fields.h"
#include "io/store_private.h"
#include "io/store_sql.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CELL_BYTES (16 << 20)
#define RETRY_MS 5
#define APPLICATION_ID "0x4e534831" /* same as in data/schema.sql */
FILE_TEXT(store_schema_sql, "data/schema.sql");
FILE_TEXT(store_moves_sql, "src/io/store_moves.sql");

/* Protects the program from a file of an untrusted source. No triggers or views
 * run. The schema calls no functions with side effects, and cannot be changed
 * behind SQLite's back. No cell may be larger than the largest cell that this
 * program writes. */
static int defend(struct store *store, struct err *err)
{
    static const struct {
        int option, value;
    } options[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
    };

    sqlite3_extended_result_codes(store->db, 1);
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        if (store_check(store,
                        sqlite3_db_config(store->db, options[i].option,
                                          options[i].value, NULL),
                        err))
            return -1;
    sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES);
    sqlite3_limit(store->db, SQLITE_LIMIT_ATTACHED, 0);
    return store_execute(store, "PRAGMA cell_size_check = ON", err);
}

/* Reads the schema version. Fails if the database belongs to another program,
 * or if the version is not supported. *version is 0 if the database is
 * empty. */
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

/* Upgrades the database to the current schema. Renames the old tables, creates
 * the new tables from data/schema.sql, and copies the rows. Thus the program
 * contains only one schema, and the same steps upgrade from any older
 * version. */
static int upgrade(struct store *store, struct err *err)
{
    struct buf sql = {0};
    int rc = 0;

    for (size_t i = 0; !rc && i < STORE_N_TABLES; i++) {
        if (sqlite3_table_column_metadata(store->db, NULL, store_tables[i],
                                          NULL, NULL, NULL, NULL, NULL, NULL))
            continue;
        rc = store_check_table(store, store_tables[i], err);
        buf_printf(&sql, "ALTER TABLE %s RENAME TO old_%s;", store_tables[i],
                   store_tables[i]);
    }
    buf_printf(&sql, "%s", store_schema_sql);
    rc = rc || store_execute(store, sql.data, err) ||
         store_ask(store, store_moves_sql, &sql, err) ||
         store_execute(store, sql.data, err);
    buf_release(&sql);
    return rc ? -1 : 0;
}

/* Creates or upgrades the schema. If two processes do this at the same time,
 * the first one to get the lock does the work, and the second one finds it
 * done. */
static int bring_up_to_date(struct store *store, struct err *err)
{
    int64_t version;
    int rc;

    if (store_begin_write(store, err))
        return -1;
    rc = read_version(store, &version, err) ||
         (version != STORE_VERSION &&
          (version ? upgrade(store, err)
                   : store_execute(store, store_schema_sql, err))) ||
         read_version(store, &version, err);
    return store_end(store, rc, err);
}

/* Replaces a reader's connection to an old file by a connection to an upgraded
 * copy in memory. The file on the disk stays as it is. */
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
    if (defend(store, err) || bring_up_to_date(store, err))
        return -1;
    return store_execute(store, "PRAGMA query_only = ON", err);
}

/* Switches the file to WAL mode. If two processes have read the file and both
 * switch it, SQLite returns SQLITE_BUSY at once instead of waiting. Each
 * process has released its lock after the statement, so a retry succeeds. */
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

/*
 * Rolls back the journal of a killed writer, which must happen before the file
 * can be read. SQLite rolls it back at the first read of a connection that may
 * write. So for a reader, this function opens a second connection that may
 * write. Other faults of the file are found later, when the file is read.
 */
static int undo_half_change(struct store *store, const char *name,
                            struct err *err)
{
    static const char read[] = "PRAGMA schema_version";
    const int status = sqlite3_exec(store->db, read, NULL, NULL, NULL);
    struct store writer = {.path = store->path};
    int rc, written;

    if (!store_is_half_changed(status))
        return 0;
    written = sqlite3_open_v2(
        name, &writer.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (!written)
        sqlite3_busy_timeout(writer.db, STORE_BUSY_TIMEOUT_MS);
    rc = store_check(&writer, written, err) || defend(&writer, err);
    if (!rc)
        written = sqlite3_exec(writer.db, read, NULL, NULL, NULL);
    /* SQLite can neither open nor remove a journal in a read-only folder. */
    if (!rc && (written == SQLITE_CANTOPEN || (written & 0xff) == SQLITE_IOERR))
        written = status;
    rc = rc || store_check(&writer, written, err);
    sqlite3_close(writer.db);
    return rc ? -1 : 0;
}

/* Fails if a page of the file is damaged. Rows and indices are not checked
 * here. Each row is checked when it is read. */
static int check_pages(struct store *store, struct err *err)
{
    struct buf answer = {0};
    int rc = store_ask(store,
                       "SELECT replace(quick_check, '*** in database main ***'"
                       " || char(10), '') FROM pragma_quick_check(1) "
                       "WHERE quick_check LIKE '***%'",
                       &answer, err);

    if (!rc && *answer.data)
        rc = err_input(err, "database '%s' is damaged: %s", store->path,
                       answer.data);
    buf_release(&answer);
    return rc;
}

/* Makes sure that the database has this program's schema. */
static int prepare_schema(struct store *store, struct err *err)
{
    int64_t version;

    if (read_version(store, &version, err) ||
        (version && check_pages(store, err)))
        return -1;
    store->version = version;
    if (!store->is_writer) {
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

static void *take_memory(int size)
{
    return mem_take((size_t)size);
}

static void *regrow_memory(void *ptr, int size)
{
    return mem_grow(ptr, 1, (size_t)size);
}

static int memory_size(void *ptr)
{
    return (int)malloc_usable_size(ptr);
}

/* Gives SQLite an allocator that never fails (base/mem.h). With SQLite's own
 * allocator, a text column is read as NULL if memory runs out. The call has no
 * effect if SQLite is already initialized. */
static void give_memory(void)
{
    struct sqlite3_mem_methods methods;

    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &methods))
        return;
    methods.xMalloc = take_memory;
    methods.xFree = mem_free;
    methods.xRealloc = regrow_memory;
    methods.xSize = memory_size;
    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

/* Opens a database. `name` is the file name for SQLite, `path` is the name in
 * messages. */
static int open_named(struct store **out, const char *name, const char *path,
                      enum store_mode mode, struct err *err)
{
    const int flags =
        SQLITE_OPEN_NOMUTEX |
        (mode == STORE_READ ? SQLITE_OPEN_READONLY
                            : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    struct store *store;
    int rc;

    give_memory();
    store = mem_alloc(1, sizeof(*store));
    store->is_writer = mode == STORE_WRITE;
    store->path = mem_grow(NULL, strlen(path) + 1, 1);
    memcpy(store->path, path, strlen(path) + 1);
    rc =
        store_check(store, sqlite3_open_v2(name, &store->db, flags, NULL), err);
    if (!rc)
        sqlite3_busy_timeout(store->db, STORE_BUSY_TIMEOUT_MS);
    if (rc || defend(store, err) ||
        (mode == STORE_READ && undo_half_change(store, name, err)) ||
        store_execute(store, "PRAGMA foreign_keys = ON", err) ||
        prepare_schema(store, err)) {
        store_close(store);
        return -1;
    }
    *out = store;
    return 0;
}

int store_open(struct store **out, const char *path, enum store_mode mode,
               struct err *err)
{
    struct buf name = {0};
    int rc;

    if (file_use(path, FILE_DATABASE, err))
        return -1;
    /* The prefix "./" is needed because SQLite gives the names "" and
     * ":memory:" a special meaning. */
    buf_printf(&name, "%s%s", path[0] == '/' ? "" : "./", path);
    rc = open_named(out, name.data, path, mode, err);
    buf_release(&name);
    return rc;
}

int store_open_memory(struct store **out, const char *source, struct err *err)
{
    return open_named(out, ":memory:", source, STORE_WRITE, err);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (int i = 0; i < MAX_PREPARED; i++)
        sqlite3_finalize(store->prepared[i].stmt);
    if (store->db && store->is_writer) {
        /* The change of the journal mode has no effect if other processes have
         * the file open. */
        sqlite3_busy_timeout(store->db, 0);
        sqlite3_exec(store->db, "PRAGMA journal_mode = DELETE", NULL, NULL,
                     NULL);
    }
    sqlite3_close(store->db);
    mem_free(store->path);
    mem_free(store);
}
