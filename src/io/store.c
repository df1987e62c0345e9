/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_CELL_BYTES (16 << 20)

#define SETTING_COLUMNS                                                   \
    "device, n_threads, precision, optimizer, batch, isa, driver, cuda, " \
    "host"
#define SETTING_VALUES "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define TIMING_COLUMNS(name) \
    name "_median_ms, " name "_p10_ms, " name "_p90_ms, "
#define SAMPLE_COLUMNS                                                    \
    "seed, case_idx, kind, part, n_tables, " TIMING_COLUMNS("forward")    \
        TIMING_COLUMNS("backward") TIMING_COLUMNS("total")                \
            TIMING_COLUMNS("linearise") TIMING_COLUMNS("sort")            \
                TIMING_COLUMNS("update") "sm_mhz, memory_mhz, "           \
                                         "temperature_c, power_w, "       \
                                         "throttle_reasons, "             \
                                         "n_iterations, flags, version, " \
                                         "started_at"
#define COMM_COLUMNS                                                      \
    "kind, n_ranks, n_hosts, total_bytes, max_bytes, median_ms, p10_ms, " \
    "p90_ms, n_iterations"
#define PROBE_COLUMNS \
    "device, n_threads, isa, kind, n_bytes, n, row_bytes, key_bits"
#define CEILING_COLUMNS                                                  \
    "kind, n_bytes, n, row_bytes, key_bits, median_ms, p10_ms, p90_ms, " \
    "n_iterations, flags"
/* ?4: id of one setting, or 0 for all of the device */
#define OF_SETTINGS                                               \
    "WHERE setting_id IN (SELECT id FROM setting WHERE (device, " \
    "n_threads, isa) = (?1, ?2, ?3) AND (?4 = 0 OR id = ?4)) "

static const char *const statement_sql[N_STATEMENTS] = {
    [STATEMENT_FIND_SETTING] =
        "SELECT id FROM setting WHERE (" SETTING_COLUMNS ") = " SETTING_VALUES,
    [STATEMENT_ADD_SETTING] =
        "INSERT INTO setting (" SETTING_COLUMNS ") VALUES " SETTING_VALUES,
    [STATEMENT_LIST_SETTINGS] =
        "SELECT id, " SETTING_COLUMNS " FROM setting ORDER BY id",
    [STATEMENT_ADD_SAMPLE] =
        "INSERT INTO sample (setting_id, " SAMPLE_COLUMNS ") VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    [STATEMENT_ADD_TABLE] =
        "INSERT INTO sample_table (sample_id, table_idx, n_rows, dim, "
        "pooling_factor, zipf_alpha, n_unique, bins) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [STATEMENT_HAS_SAMPLE] =
        "SELECT 1 FROM sample JOIN setting ON setting.id = setting_id WHERE "
        "(" SETTING_COLUMNS ") = " SETTING_VALUES " AND "
        "(seed, case_idx, kind, part) = (?, ?, ?, ?)",
    /* A scan by key needs no sorting, as the index on the setting would. */
    [STATEMENT_LIST_SAMPLES] =
        "SELECT id, setting_id, " SAMPLE_COLUMNS
        " FROM sample NOT INDEXED " OF_SETTINGS "ORDER BY id",
    [STATEMENT_LIST_TABLES] =
        "SELECT sample_id, table_idx, n_rows, dim, pooling_factor, "
        "zipf_alpha, n_unique, bins FROM sample NOT INDEXED CROSS JOIN "
        "sample_table ON sample_id = id " OF_SETTINGS "ORDER BY id, table_idx",
    [STATEMENT_ADD_COMM] =
        "INSERT OR REPLACE INTO comm_sample (setting_id, " COMM_COLUMNS
        ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [STATEMENT_HAS_COMM] =
        "SELECT 1 FROM comm_sample JOIN setting ON setting.id = setting_id "
        "WHERE (" SETTING_COLUMNS ") = " SETTING_VALUES " AND (kind, n_ranks, "
        "n_hosts, total_bytes, max_bytes) = (?, ?, ?, ?, ?)",
    [STATEMENT_LIST_COMM] =
        "SELECT id, " COMM_COLUMNS " FROM comm_sample " OF_SETTINGS
        "ORDER BY setting_id, kind, n_ranks, n_hosts, total_bytes, max_bytes",
    [STATEMENT_ADD_CEILING] =
        "INSERT OR REPLACE INTO ceiling (" PROBE_COLUMNS ", median_ms, p10_ms, "
        "p90_ms, n_iterations, flags, moved_bytes, measured_at) VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [STATEMENT_HAS_CEILING] = "SELECT 1 FROM ceiling WHERE (" PROBE_COLUMNS
                              ") = (?, ?, ?, ?, ?, ?, ?, ?)",
    [STATEMENT_LIST_CEILINGS] =
        "SELECT id, " CEILING_COLUMNS " FROM ceiling WHERE "
        "(device, n_threads, isa) = (?, ?, ?) ORDER BY id",
    [STATEMENT_ADD_TRAINING] =
        "INSERT INTO training_log (logged_at, version, model_path, "
        "model_hash, verdict, old_mape, new_mape, n_samples, old_hash, "
        "new_hash, n_held_out, gain_se, min_gain, reason, setting) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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

    if (!*stmt &&
        store_check(store,
                    sqlite3_prepare_v3(store->db, statement_sql[which], -1,
                                       SQLITE_PREPARE_PERSISTENT, stmt, NULL),
                    err))
        return -1;
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

void bind_u64(struct query *query, uint64_t value)
{
    bind_i64(query, (int64_t)value);
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

int query_list(struct query *query, take_row *take, size_t size, void **items,
               size_t *n, struct arena *arena, struct err *err)
{
    size_t n_found = 0, cap = 0;
    char *list = NULL;
    bool has_row;
    int rc = -1;

    for (;; n_found++) {
        if (query_step(query, &has_row, err))
            goto out;
        if (!has_row)
            break;
        if (n_found == cap)
            list = mem_grow(list, cap = 2 * cap + 64, size);
        if (take(query, list + n_found * size,
                 n_found ? list + (n_found - 1) * size : NULL, arena, err))
            goto out;
    }
    *items = arena_alloc(arena, n_found, size);
    if (n_found)
        memcpy(*items, list, n_found * size);
    *n = n_found;
    rc = 0;
out:
    query_end(query);
    mem_free(list);
    return rc;
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

uint64_t take_u64(struct query *query)
{
    return (uint64_t)take_i64(query);
}

double take_double(struct query *query)
{
    if (sqlite3_column_type(query->stmt, ++query->column) == SQLITE_NULL)
        return NAN;
    return sqlite3_column_double(query->stmt, query->column);
}

const char *take_shared_text(struct query *query, const char *before,
                             struct arena *arena)
{
    const void *column = sqlite3_column_text(query->stmt, ++query->column);
    const char *text = column ? column : "", *shown;

    if (before && !strcmp(text, before))
        return before;
    shown = text_shown(text, arena);
    return shown == text ? arena_strdup(arena, text) : shown;
}

const char *take_text(struct query *query, struct arena *arena)
{
    return take_shared_text(query, NULL, arena);
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

void bind_timing(struct query *query, const struct timing *timing)
{
    bind_double(query, timing->median_ms);
    bind_double(query, timing->p10_ms);
    bind_double(query, timing->p90_ms);
}

struct timing take_timing(struct query *query)
{
    struct timing timing;

    timing.median_ms = take_double(query);
    timing.p10_ms = take_double(query);
    timing.p90_ms = take_double(query);
    return timing;
}

void bind_device(struct query *query, const struct sample_setting *setting)
{
    bind_text(query, setting->device);
    bind_i64(query, setting->n_threads);
    bind_text(query, setting->isa);
}

void bind_setting(struct query *query, const struct sample_setting *setting)
{
    bind_text(query, setting->device);
    bind_i64(query, setting->n_threads);
    bind_text(query, precision_name(setting->precision));
    bind_text(query, optimizer_name(setting->optimizer));
    bind_i64(query, setting->batch);
    bind_text(query, setting->isa);
    bind_text(query, setting->driver);
    bind_text(query, setting->cuda);
    bind_text(query, setting->host);
}

int store_find_setting(struct store *store,
                       const struct sample_setting *setting, int64_t *id,
                       struct err *err)
{
    struct query query;
    bool found;
    int rc;

    if (query_begin(&query, store, STATEMENT_FIND_SETTING, err))
        return -1;
    bind_setting(&query, setting);
    rc = query_step(&query, &found, err);
    if (!rc)
        *id = found ? take_i64(&query) : 0;
    query_end(&query);
    return rc;
}

int store_setting_id(struct store *store, const struct sample_setting *setting,
                     int64_t *id, struct err *err)
{
    struct query query;

    if (store_find_setting(store, setting, id, err))
        return -1;
    if (*id)
        return 0;
    if (query_begin(&query, store, STATEMENT_ADD_SETTING, err))
        return -1;
    bind_setting(&query, setting);
    if (query_run(&query, err))
        return -1;
    *id = sqlite3_last_insert_rowid(store->db);
    return 0;
}

static int take_setting(struct query *query, void *item, const void *before,
                        struct arena *arena, struct err *err)
{
    struct stored_setting *stored = item;
    struct sample_setting *setting = &stored->setting;
    int precision, optimizer;

    (void)before;
    stored->id = take_i64(query);
    setting->device = take_text(query, arena);
    setting->n_threads = (uint32_t)take_u64(query);
    precision = text_choice(precision_names, take_text(query, arena));
    optimizer = text_choice(optimizer_names, take_text(query, arena));
    setting->batch = (uint32_t)take_u64(query);
    setting->isa = take_text(query, arena);
    setting->driver = take_text(query, arena);
    setting->cuda = take_text(query, arena);
    setting->host = take_text(query, arena);
    if (precision < 0 || optimizer < 0)
        return err_set(err, ERR_INPUT,
                       "cost database '%s': a setting of device '%s' has an "
                       "unknown precision or optimizer",
                       query->store->path, setting->device);
    setting->precision = (enum precision)precision;
    setting->optimizer = (enum optimizer)optimizer;
    return 0;
}

int store_list_settings(struct store *store, struct stored_setting **settings,
                        size_t *n, struct arena *arena, struct err *err)
{
    struct query query;
    void *items;

    if (query_begin(&query, store, STATEMENT_LIST_SETTINGS, err) ||
        query_list(&query, take_setting, sizeof(**settings), &items, n, arena,
                   err))
        return -1;
    *settings = items;
    return 0;
}

int store_settings(struct store *store, struct sample_setting **settings,
                   size_t *n, struct arena *arena, struct err *err)
{
    struct stored_setting *stored;

    if (store_list_settings(store, &stored, n, arena, err))
        return -1;
    *settings = ARENA_NEW(arena, struct sample_setting, *n);
    for (size_t i = 0; i < *n; i++)
        (*settings)[i] = stored[i].setting;
    return 0;
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
    bind_text(&query, verdict->model_path);
    bind_text(&query,
              verdict->replaced ? verdict->new_hash : verdict->old_hash);
    bind_text(&query, verdict->replaced ? "replaced" : "kept");
    bind_double(&query, verdict->old_mape);
    bind_double(&query, verdict->new_mape);
    bind_u64(&query, verdict->n_samples);
    bind_text(&query, verdict->old_hash);
    bind_text(&query, verdict->new_hash);
    bind_u64(&query, verdict->n_held_out);
    bind_double(&query, verdict->gain_se);
    bind_double(&query, verdict->min_gain);
    bind_text(&query, verdict->reason);
    bind_text(&query, verdict->setting);
    return query_run(&query, err);
}
