/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include "base/file.h"

#include <assert.h>
#include <malloc.h>
#include <string.h>

#define MAX_CELL_BYTES (16 << 20)

int store_check(const struct store *store, int status, struct err *err)
{
    int system_errno = sqlite3_system_errno(store->db);
    const char *reason = sqlite3_errmsg(store->db);

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

int store_begin(struct store *store, enum store_mode mode, struct err *err)
{
    return store_execute(store,
                         mode == STORE_READ ? "BEGIN" : "BEGIN IMMEDIATE", err);
}

int store_end(struct store *store, int rc, struct err *err)
{
    if (!rc)
        rc = store_execute(store, "COMMIT", err);
    /* After some errors SQLite has rolled back by itself. */
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

static struct prepared *
prepare(struct store *store, const struct statement *statement, struct err *err)
{
    struct prepared *prepared = store->prepared;
    struct buf sql = {0};
    int status;

    while (prepared->statement && prepared->statement != statement)
        prepared++;
    assert(prepared < store->prepared + MAX_PREPARED - 1);
    if (!prepared->statement) {
        store_expand(&sql, statement->sql, prepared->bound);
        status = sqlite3_prepare_v3(store->db, sql.data, -1,
                                    SQLITE_PREPARE_PERSISTENT, &prepared->stmt,
                                    NULL);
        buf_release(&sql);
        if (store_check(store, status, err))
            return NULL;
        prepared->statement = statement;
    }
    return prepared;
}

int query_begin(struct query *query, struct store *store,
                const struct statement *statement, const void *const *bound,
                struct err *err)
{
    const struct prepared *prepared = prepare(store, statement, err);
    int place = 0, status = SQLITE_OK;

    *query = (struct query){.store = store};
    if (!prepared)
        return -1;
    query->stmt = prepared->stmt;
    if (statement->listed) {
        query->listed = store_list(statement->listed);
        row_reader_init(&query->reader, query->listed->table, query->stmt);
    }
    for (size_t i = 0; !status && bound && bound[i]; i++)
        status = bind_row(query->stmt, &place, prepared->bound[i], bound[i]);
    return store_check(store, status, err);
}

int query_step(struct query *query, bool *has_row, struct err *err)
{
    int status = sqlite3_step(query->stmt);

    if (store_check(query->store, status, err) ||
        (status == SQLITE_ROW && row_check(query, err)))
        return -1;
    if (has_row)
        *has_row = status == SQLITE_ROW;
    return 0;
}

void query_end(struct query *query)
{
    if (query->stmt)
        sqlite3_reset(query->stmt);
}

int query_run(struct store *store, const struct statement *statement,
              const void *const *bound, bool *has_row, struct err *err)
{
    struct query query;
    int rc = query_begin(&query, store, statement, bound, err) ||
             query_step(&query, has_row, err);

    query_end(&query);
    return rc ? -1 : 0;
}

void *query_list(struct store *store, const struct statement *statement,
                 const void *const *bound, const void *ctx, size_t *n,
                 struct arena *arena, struct err *err)
{
    const struct store_list *listed = store_list(statement->listed);
    const size_t size = statement->item_bytes;
    size_t n_found = 0, cap = 0;
    char *list = NULL, *item;
    struct query query;
    bool has_row = false;
    int rc = query_begin(&query, store, statement, bound, err) ||
             query_step(&query, &has_row, err);

    query.ctx = ctx;
    for (; !rc && has_row; n_found++) {
        list = mem_room(list, n_found, &cap, size);
        item = list + n_found * size;
        take_row(query.stmt, query.reader.n_columns - (int)listed->n, listed,
                 item, n_found ? item - size : NULL, arena);
        rc = (statement->finish && statement->finish(&query, item, err)) ||
             query_step(&query, &has_row, err);
    }
    query_end(&query);
    *n = n_found;
    list = arena_keep(arena, list, n_found, size);
    return rc ? NULL : list;
}

/* A file that others made must not run anything: no triggers, no views, no
 * functions in a schema that have effects, no changes of the schema behind
 * SQLite's back; and no cell is larger than what the program ever writes. */
int store_defend(struct store *store, struct err *err)
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

/* Gives SQLite memory that never fails (base/mem.h): a column for whose text
 * there is none would read as NULL. Once SQLite works it stays as it is. */
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

/* `name` is SQLite's for the file that messages call `path`. */
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
    store->mode = mode;
    store->path = mem_grow(NULL, strlen(path) + 1, 1);
    memcpy(store->path, path, strlen(path) + 1);
    rc =
        store_check(store, sqlite3_open_v2(name, &store->db, flags, NULL), err);
    if (!rc)
        sqlite3_busy_timeout(store->db, STORE_BUSY_TIMEOUT_MS);
    if (rc || store_defend(store, err) ||
        store_execute(store, "PRAGMA foreign_keys = ON", err) ||
        store_prepare(store, err)) {
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
    /* "./" keeps SQLite from reading a meaning into "" and ":memory:". */
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
    if (store->db && store->mode == STORE_WRITE) {
        /* Where others have the file open this does nothing. */
        sqlite3_busy_timeout(store->db, 0);
        sqlite3_exec(store->db, "PRAGMA journal_mode = DELETE", NULL, NULL,
                     NULL);
    }
    sqlite3_close(store->db);
    mem_free(store->path);
    mem_free(store);
}
