/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_CELL_BYTES (16 << 20)

/* ?4: id of one setting, or 0 for all of the device */
#define OF_SETTINGS                                               \
    "WHERE setting_id IN (SELECT id FROM setting WHERE (device, " \
    "n_threads, isa) = (?1, ?2, ?3) AND (?4 = 0 OR id = ?4)) "

/* With lists as store_expand writes them out. */
static const char *const statement_sql[N_STATEMENTS] = {
    [STATEMENT_FIND_SETTING] =
        "SELECT id FROM setting WHERE ({setting}) = ({?setting})",
    [STATEMENT_ADD_SETTING] =
        "INSERT INTO setting ({setting}) VALUES ({?setting})",
    [STATEMENT_LIST_SETTINGS] = "SELECT id, {setting} FROM setting ORDER BY id",
    [STATEMENT_ADD_SAMPLE] = "INSERT INTO sample (setting_id, {sample}) VALUES "
                             "(?, {?sample}) ON CONFLICT DO NOTHING",
    [STATEMENT_ADD_TABLE] =
        "INSERT INTO sample_table (sample_id, table_idx, {table}) VALUES "
        "(?, ?, {?table})",
    [STATEMENT_HAS_SAMPLE] =
        "SELECT 1 FROM sample JOIN setting ON setting.id = setting_id WHERE "
        "({setting}) = ({?setting}) AND ({sample_key}) = ({?sample_key})",
    /* A scan by key needs no sorting, as the index on the setting would. */
    [STATEMENT_LIST_SAMPLES] =
        "SELECT id, setting_id, {sample} FROM sample NOT INDEXED " OF_SETTINGS
        "ORDER BY id",
    [STATEMENT_LIST_TABLES] =
        "SELECT sample_id, table_idx, {table} FROM sample NOT INDEXED CROSS "
        "JOIN sample_table ON sample_id = id " OF_SETTINGS
        "ORDER BY id, table_idx",
    [STATEMENT_ADD_COMM] =
        "INSERT OR REPLACE INTO comm_sample (setting_id, {comm}) VALUES "
        "(?, {?comm})",
    [STATEMENT_HAS_COMM] =
        "SELECT 1 FROM comm_sample JOIN setting ON setting.id = setting_id "
        "WHERE ({setting}) = ({?setting}) AND ({comm_key}) = ({?comm_key})",
    [STATEMENT_LIST_COMM] = "SELECT id, {comm} FROM comm_sample " OF_SETTINGS
                            "ORDER BY setting_id, {comm_key}",
    [STATEMENT_ADD_CEILING] =
        "INSERT OR REPLACE INTO ceiling ({device}, {ceiling}, moved_bytes, "
        "measured_at) VALUES ({?device}, {?ceiling}, ?, ?)",
    [STATEMENT_HAS_CEILING] = "SELECT 1 FROM ceiling WHERE ({device}, {probe}) "
                              "= ({?device}, {?probe})",
    [STATEMENT_LIST_CEILINGS] = "SELECT id, {ceiling} FROM ceiling WHERE "
                                "({device}) = ({?device}) ORDER BY id",
    [STATEMENT_ADD_TRAINING] =
        "INSERT INTO training_log (logged_at, version, model_hash, verdict, "
        "{verdict}) VALUES (?, ?, ?, ?, {?verdict})",
};

/* The table that a statement lists rows of. */
static const char *const listed_table[N_STATEMENTS] = {
    [STATEMENT_LIST_SETTINGS] = "setting",
    [STATEMENT_LIST_SAMPLES] = "sample",
    [STATEMENT_LIST_TABLES] = "sample_table",
    [STATEMENT_LIST_COMM] = "comm_sample",
    [STATEMENT_LIST_CEILINGS] = "ceiling",
};

int store_check(const struct store *store, int status, struct err *err)
{
    int system_errno = sqlite3_system_errno(store->db);

    switch (status & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_NOTADB:
        return err_set(err, ERR_INPUT, "'%s' is not a SQLite database",
                       store->path);
    case SQLITE_CORRUPT:
        return err_set(err, ERR_INPUT, "database '%s' is damaged: %s",
                       store->path, sqlite3_errmsg(store->db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(err, ERR_IO,
                       "cannot access '%s': another process holds its lock",
                       store->path);
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        if (system_errno)
            return err_set(err, ERR_IO, "cannot access '%s': %s", store->path,
                           strerror(system_errno));
        break;
    default:
        break;
    }
    return err_set(err, ERR_IO, "cannot access '%s': %s", store->path,
                   sqlite3_errmsg(store->db));
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

int query_begin(struct query *query, struct store *store,
                enum store_statement which, struct err *err)
{
    sqlite3_stmt **stmt = &store->statements[which];

    if (!*stmt) {
        struct buf sql = {0};
        int status;

        store_expand(&sql, statement_sql[which]);
        status = sqlite3_prepare_v3(store->db, sql.data, -1,
                                    SQLITE_PREPARE_PERSISTENT, stmt, NULL);
        buf_release(&sql);
        if (store_check(store, status, err))
            return -1;
    }
    *query = (struct query){.store = store, .stmt = *stmt};
    row_reader_init(&query->reader, listed_table[which], *stmt);
    return 0;
}

static void bind_done(struct query *query, int status)
{
    if (!query->status)
        query->status = status;
}

void bind_i64(struct query *query, int64_t value)
{
    bind_done(query, sqlite3_bind_int64(query->stmt, ++query->column, value));
}

void bind_double(struct query *query, double value)
{
    bind_done(query, sqlite3_bind_double(query->stmt, ++query->column, value));
}

void bind_text(struct query *query, const char *text)
{
    bind_done(query, sqlite3_bind_text(query->stmt, ++query->column,
                                       text ? text : "", -1, SQLITE_STATIC));
}

void bind_blob(struct query *query, const void *data, size_t len)
{
    bind_done(query, sqlite3_bind_blob64(query->stmt, ++query->column, data,
                                         len, SQLITE_STATIC));
}

int query_step(struct query *query, bool *has_row, struct err *err)
{
    int status = query->status;

    if (!status)
        status = sqlite3_step(query->stmt);
    if (store_check(query->store, status, err) ||
        (status == SQLITE_ROW &&
         row_check(&query->reader, query->store, query->stmt, err)))
        return -1;
    if (has_row)
        *has_row = status == SQLITE_ROW;
    query->column = -1;
    return 0;
}

void query_end(struct query *query)
{
    if (query->stmt)
        sqlite3_reset(query->stmt);
}

int query_run(struct query *query, struct err *err)
{
    int rc = query_step(query, NULL, err);

    query_end(query);
    return rc;
}

void *query_list(struct query *query, take_item *take, size_t size, size_t *n,
                 struct arena *arena, struct err *err)
{
    size_t n_found = 0, cap = 0;
    char *list = NULL;
    void *items = NULL;
    bool has_row;

    for (;; n_found++) {
        if (query_step(query, &has_row, err))
            goto out;
        if (!has_row)
            break;
        list = mem_room(list, n_found, &cap, size);
        if (take(query, list + n_found * size,
                 n_found ? list + (n_found - 1) * size : NULL, arena, err))
            goto out;
    }
    items = arena_alloc(arena, n_found, size);
    if (n_found)
        memcpy(items, list, n_found * size);
    *n = n_found;
out:
    query_end(query);
    mem_free(list);
    return items;
}

bool query_found(struct query *query)
{
    bool found = false;
    struct err ignored;

    if (query_step(query, &found, &ignored))
        found = false;
    query_end(query);
    return found;
}

int64_t take_i64(struct query *query)
{
    return sqlite3_column_int64(query->stmt, ++query->column);
}

double take_double(struct query *query)
{
    if (sqlite3_column_type(query->stmt, ++query->column) == SQLITE_NULL)
        return NAN;
    return sqlite3_column_double(query->stmt, query->column);
}

const char *take_text(struct query *query, const char *before,
                      struct arena *arena)
{
    const void *column = sqlite3_column_text(query->stmt, ++query->column);
    const char *text = column ? column : "", *shown;

    if (before && !strcmp(text, before))
        return before;
    shown = text_shown(text, arena);
    return shown == text ? arena_strdup(arena, text) : shown;
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

int store_open(struct store **out, const char *path, enum store_mode mode,
               struct err *err)
{
    int flags =
        SQLITE_OPEN_NOMUTEX |
        (mode == STORE_READ ? SQLITE_OPEN_READONLY
                            : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    struct store *store;
    struct buf name = {0};
    int rc = -1;

    if (file_use(path, FILE_DATABASE, err))
        return -1;
    store_give_memory();
    store = mem_alloc(1, sizeof(*store));
    store->mode = mode;
    store->path = mem_grow(NULL, strlen(path) + 1, 1);
    memcpy(store->path, path, strlen(path) + 1);
    /* "./" keeps SQLite from reading a meaning into "" and ":memory:". */
    buf_printf(&name, "%s%s", path[0] == '/' ? "" : "./", path);
    if (store_check(store, sqlite3_open_v2(name.data, &store->db, flags, NULL),
                    err))
        goto out;
    if (store_defend(store, err))
        goto out;
    sqlite3_busy_timeout(store->db, STORE_BUSY_TIMEOUT_MS);
    if (store_execute(store, "PRAGMA foreign_keys = ON", err))
        goto out;
    if (store_prepare(store, err))
        goto out;
    *out = store;
    rc = 0;
out:
    buf_release(&name);
    if (rc)
        store_close(store);
    return rc;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (int i = 0; i < N_STATEMENTS; i++)
        sqlite3_finalize(store->statements[i]);
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

int store_find_setting(struct store *store,
                       const struct sample_setting *setting,
                       enum store_scope scope, int64_t *id, struct err *err)
{
    struct query query;
    bool found;
    int rc;

    *id = 0;
    if (scope == STORE_DEVICE)
        return 0;
    if (query_begin(&query, store, STATEMENT_FIND_SETTING, err))
        return -1;
    bind_row(&query, LIST_SETTING, setting);
    rc = query_step(&query, &found, err);
    if (!rc)
        *id = found ? take_i64(&query) : -1;
    query_end(&query);
    return rc;
}

int store_setting_id(struct store *store, const struct sample_setting *setting,
                     int64_t *id, struct err *err)
{
    struct query query;

    if (store_find_setting(store, setting, STORE_SETTING, id, err))
        return -1;
    if (*id > 0)
        return 0;
    if (query_begin(&query, store, STATEMENT_ADD_SETTING, err))
        return -1;
    bind_row(&query, LIST_SETTING, setting);
    if (query_run(&query, err))
        return -1;
    *id = sqlite3_last_insert_rowid(store->db);
    return 0;
}

static int take_setting(struct query *query, void *item, const void *before,
                        struct arena *arena, struct err *err)
{
    struct sample_setting *setting = item;

    setting->id = take_i64(query);
    take_row(query, LIST_SETTING, setting, before, arena);
    if (setting->precision < N_PRECISIONS && setting->optimizer < N_OPTIMIZERS)
        return 0;
    return err_set(err, ERR_INPUT,
                   "cost database '%s': a setting of device '%s' has an "
                   "unknown precision or optimizer",
                   query->store->path, setting->device);
}

int store_settings(struct store *store, struct sample_setting **settings,
                   size_t *n, struct arena *arena, struct err *err)
{
    struct query query;

    if (query_begin(&query, store, STATEMENT_LIST_SETTINGS, err))
        return -1;
    *settings =
        query_list(&query, take_setting, sizeof(**settings), n, arena, err);
    return *settings ? 0 : -1;
}

int store_log_verdict(struct store *store, const struct model_verdict *verdict,
                      struct err *err)
{
    char now[CLOCK_TEXT_MAX];
    struct query query;

    if (query_begin(&query, store, STATEMENT_ADD_TRAINING, err))
        return -1;
    bind_text(&query, clock_utc(now));
    bind_text(&query, NEUROSHARD_VERSION);
    bind_text(&query,
              verdict->replaced ? verdict->new_hash : verdict->old_hash);
    bind_text(&query, verdict->replaced ? "replaced" : "kept");
    bind_row(&query, LIST_VERDICT, verdict);
    return query_run(&query, err);
}
