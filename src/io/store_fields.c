/* SPDX-License-Identifier: MIT */
#include "io/store_fields.h"

#include "base/text.h"
#include "core/product.h"
#include "device/probe.h"
#include "io/model_verdict.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* 2^53; doubles hold all integers up to this value */
#define MAX_COUNT 9007199254740992.0
#define MAX_U32 4294967295.0
#define MAX_I64 9223372036854775807.0
#define MAX_MS 1e9
#define MAX_TEXT 200

#define TIME(row, member, time) \
    MEMBER_REAL, offsetof(row, member) + offsetof(struct timing, time)
#define TIMING(prefix, row, member)                                    \
    {prefix "median_ms", TIME(row, member, median_ms), .max = MAX_MS}, \
        {prefix "p10_ms", TIME(row, member, p10_ms), .max = MAX_MS},   \
    {                                                                  \
        prefix "p90_ms", TIME(row, member, p90_ms), .max = MAX_MS      \
    }

const char *const store_tables[] = {
    "setting", "sample", "sample_table", "comm_sample", "ceiling",
    "product", "canary", "training_log", NULL};

/* Columns of a setting. The first three columns identify a device, the first
 * six a machine. */
#define SETTING(member) MEMBER_OF(struct sample_setting, member)
static const struct store_column setting_columns[] = {
    {"device", SETTING(device), .min = 1, .max = MAX_TEXT},
    {"n_threads", SETTING(n_threads), .max = 1e6},
    {"isa", SETTING(isa), .min = 1, .max = MAX_TEXT},
    {"driver", SETTING(driver), .max = MAX_TEXT},
    {"cuda", SETTING(cuda), .max = MAX_TEXT},
    {"host", SETTING(host), .max = MAX_TEXT},
    {"precision", SETTING(precision), .names = precision_names},
    {"optimizer", SETTING(optimizer), .names = optimizer_names},
    {"batch", SETTING(batch), .min = 1, .max = MAX_U32},
};

/* Columns of a sample. The first four columns identify a sample within a
 * setting. */
#define SAMPLE(member) MEMBER_OF(struct sample, member)
static const struct store_column sample_columns[] = {
    {"seed", SAMPLE(seed), .is_any = true},
    {"case_idx", SAMPLE(case_idx), .max = MAX_I64},
    {"kind", SAMPLE(kind), .names = sample_kind_names},
    {"part", SAMPLE(part), .max = 1e6},
    {"n_tables", SAMPLE(n_tables), .max = 1e6},
    TIMING("forward_", struct sample, forward),
    TIMING("backward_", struct sample, backward),
    TIMING("total_", struct sample, total),
    TIMING("linearise_", struct sample, linearise),
    TIMING("sort_", struct sample, sort),
    TIMING("update_", struct sample, update),
    {"sm_mhz", SAMPLE(health.sm_mhz), .max = 1e6},
    {"memory_mhz", SAMPLE(health.memory_mhz), .max = 1e6},
    {"temperature_c", SAMPLE(health.temperature_c), .max = 1e6},
    {"power_w", SAMPLE(health.power_w), .max = 1e6},
    {"throttle_reasons", SAMPLE(health.throttle_reasons), .is_any = true},
    {"n_iterations", SAMPLE(n_iterations), .max = MAX_U32},
    {"flags", SAMPLE(flags), .max = MAX_U32},
    {"version", SAMPLE(version), .max = MAX_TEXT},
    {"started_at", SAMPLE(started_at), .max = MAX_TEXT},
};

#define TABLE(member) MEMBER_OF(struct sample_table, member)
static const struct store_column table_columns[] = {
    {"n_rows", TABLE(n_rows), .min = 1, .max = MAX_COUNT},
    {"dim", TABLE(dim), .min = 1, .max = 1048576},
    {"pooling_factor", TABLE(pooling_factor), .max = 1e6},
    {"zipf_alpha", TABLE(zipf_alpha), .max = 100, .or_null = true},
    {"n_unique", TABLE(n_unique), .max = MAX_COUNT},
    {"bins", TABLE(bins[0]), .max = STORE_MAX_SHARE, .is_blob = true},
};

/* Columns of an exchange. The first five columns identify an exchange within a
 * setting. */
#define COMM(member) MEMBER_OF(struct comm_sample, member)
static const struct store_column comm_columns[] = {
    {"kind", COMM(kind), .min = 1, .max = MAX_TEXT},
    {"n_ranks", COMM(n_ranks), .min = 1, .max = 1e6},
    {"n_hosts", COMM(n_hosts), .min = 1, .max = 1e6},
    {"total_bytes", COMM(total_bytes), .max = MAX_COUNT},
    {"max_bytes", COMM(max_bytes), .max = MAX_COUNT},
    TIMING("", struct comm_sample, time),
    {"n_iterations", COMM(n_iterations), .max = MAX_U32},
    {"host_bytes", COMM(host_bytes), .max = MAX_COUNT},
};

/* Columns of a ceiling. The first five columns identify a probe on a device. */
#define CEILING(member) MEMBER_OF(struct ceiling, member)
static const struct store_column ceiling_columns[] = {
    {"kind", CEILING(probe.kind), .names = probe_kind_names},
    {"n_bytes", CEILING(probe.n_bytes), .max = MAX_COUNT},
    {"n", CEILING(probe.n), .max = MAX_COUNT},
    {"row_bytes", CEILING(probe.row_bytes), .max = MAX_U32},
    {"key_bits", CEILING(probe.key_bits), .max = 64},
    TIMING("", struct ceiling, timing),
    {"n_iterations", CEILING(n_iterations), .max = MAX_U32},
    {"flags", CEILING(flags), .max = MAX_U32},
};

/* Columns of a matrix product. The first six columns identify a product on a
 * device. */
#define PRODUCT(member) MEMBER_OF(struct product_sample, member)
static const struct store_column product_columns[] = {
    {"type", PRODUCT(product.type), .names = dense_type_names},
    {"form", PRODUCT(product.form), .names = product_form_names},
    {"m", PRODUCT(product.m), .min = 1, .max = MAX_U32},
    {"n", PRODUCT(product.n), .min = 1, .max = MAX_U32},
    {"k", PRODUCT(product.k), .min = 1, .max = MAX_U32},
    {"n_batch", PRODUCT(product.n_batch), .min = 1, .max = MAX_U32},
    TIMING("", struct product_sample, timing),
    {"n_iterations", PRODUCT(n_iterations), .max = MAX_U32},
    {"flags", PRODUCT(flags), .max = MAX_U32},
};

#define VERDICT(member) MEMBER_OF(struct model_verdict, member)
static const struct store_column verdict_columns[] = {
    {"model_path", VERDICT(model_path), .is_any = true},
    {"old_hash", VERDICT(old_hash), .is_any = true},
    {"new_hash", VERDICT(new_hash), .is_any = true},
    {"reason", VERDICT(reason), .is_any = true},
    {"old_mape", VERDICT(old_mape), .is_any = true},
    {"new_mape", VERDICT(new_mape), .is_any = true},
    {"gain_se", VERDICT(gain_se), .is_any = true},
    {"min_gain", VERDICT(min_gain), .is_any = true},
    {"n_samples", VERDICT(n_samples), .is_any = true},
    {"n_held_out", VERDICT(n_held_out), .is_any = true},
    {"setting", VERDICT(setting), .is_any = true},
};

/* Columns that are not members of a struct: the key of a sample's table, and
 * single values that a statement binds. */
static const struct store_column table_key_columns[] = {
    {"sample_id", MEMBER_U64, 0, .is_any = true},
    {"table_idx", MEMBER_U64, sizeof(uint64_t), .max = 1e6}};
static const struct store_column moved_columns[] = {
    {"moved_bytes", MEMBER_REAL, 0, .max = 1e18}};
static const struct store_column probe_columns[] = {
    {"best_ms", MEMBER_REAL, 0, .max = MAX_MS}};
static const struct store_column flag_columns[] = {
    {"", MEMBER_U32, 0, .is_any = true}};

#define ALL(columns) columns, sizeof(columns) / sizeof(*(columns))
const struct store_list store_lists[] = {
    {"device", "ceiling", setting_columns, 3},
    {"machine", "canary", setting_columns, 6},
    {"setting", "setting", ALL(setting_columns)},
    {"sample_key", "", sample_columns, 4},
    {"sample", "sample", ALL(sample_columns)},
    {"table", "sample_table", ALL(table_columns)},
    {"table_key", "sample_table", ALL(table_key_columns)},
    {"comm_key", "", comm_columns, 5},
    {"comm", "comm_sample", ALL(comm_columns)},
    {"probe", "", ceiling_columns, 5},
    {"ceiling", "ceiling", ALL(ceiling_columns)},
    {"moved", "ceiling", ALL(moved_columns)},
    {"product_device", "product", setting_columns, 3},
    {"shape", "", product_columns, 6},
    {"product", "product", ALL(product_columns)},
    {"canary", "canary", ALL(probe_columns)},
    {"verdict", "", ALL(verdict_columns)},
    {"flag", "", ALL(flag_columns)},
    {0},
};

const struct store_list *store_list(const char *name)
{
    const size_t len = strcspn(name, "}");
    const struct store_list *list = store_lists;

    while (list->name && (strncmp(list->name, name, len) || list->name[len]))
        list++;
    assert(list->name);
    return list;
}

void store_expand(struct buf *sql, const char *template,
                  const struct store_list *bound[STORE_MAX_BOUND])
{
    for (const char *pos = template, *name; *pos; pos = name) {
        const size_t len = strcspn(pos, "{");
        const bool is_values = pos[len] && pos[len + 1] == '?';
        const struct store_list *list;

        buf_add(sql, pos, len);
        if (!pos[len])
            return;
        list = store_list(name = pos + len + 1 + is_values);
        if (is_values)
            *bound++ = list;
        for (size_t c = 0; c < list->n; c++)
            buf_printf(sql, "%s%s", c ? ", " : "",
                       is_values ? "?" : list->columns[c].name);
        name += strlen(list->name) + 1;
    }
}

static int bind_value(sqlite3_stmt *stmt, int place,
                      const struct store_column *column, const void *pos)
{
    const char *text = "";

    if (column->is_blob)
        return sqlite3_bind_blob(
            stmt, place, pos, REUSE_BINS * (int)sizeof(double), SQLITE_STATIC);
    if (column->type == MEMBER_REAL) /* NAN is stored as NULL */
        return sqlite3_bind_double(stmt, place, *(const double *)pos);
    if (column->type == MEMBER_U64)
        return sqlite3_bind_int64(stmt, place, *(const int64_t *)pos);
    if (column->type == MEMBER_U32 && !column->names)
        return sqlite3_bind_int64(stmt, place, *(const uint32_t *)pos);
    if (column->names)
        text = column->names[*(const uint32_t *)pos];
    else if (*(const char *const *)pos)
        text = *(const char *const *)pos;
    return sqlite3_bind_text(stmt, place, text, -1, SQLITE_STATIC);
}

/* Binds the members of a struct to the parameters after *place, and advances
 * *place. Returns SQLite's status. */
static int bind_row(sqlite3_stmt *stmt, int *place,
                    const struct store_list *list, const void *row)
{
    int status = SQLITE_OK;

    for (size_t c = 0; !status && c < list->n; c++) {
        const struct store_column *column = &list->columns[c];

        status = bind_value(stmt, ++*place, column,
                            (const char *)row + column->offset);
    }
    return status;
}

/* Copies the text of a column into the arena, quoted if it is not printable. If
 * the previous row has the same text in this column, returns the previous row's
 * copy. */
static const char *copy_text(const void *column, const char *before,
                             size_t offset, struct arena *arena)
{
    const char *text = column ? column : "", *shown;
    const char *last = before ? *(const char *const *)(before + offset) : NULL;

    if (last && !strcmp(text, last))
        return last;
    shown = text_shown(text, arena);
    return shown == text ? arena_strdup(arena, text) : shown;
}

void take_row(const struct query *query, void *row, const void *before,
              struct arena *arena)
{
    const struct store_list *list = query->listed;
    sqlite3_stmt *stmt = query->stmt;
    int place;

    assert(list); /* the statement must give the list of its last columns */
    place = query->n_columns - (int)list->n;
    for (size_t c = 0; c < list->n; c++, place++) {
        const struct store_column *column = &list->columns[c];
        void *pos = (char *)row + column->offset;

        if (column->is_blob)
            memcpy(pos, sqlite3_column_blob(stmt, place),
                   REUSE_BINS * sizeof(double));
        else if (column->names)
            *(uint32_t *)pos = (uint32_t)text_choice(
                column->names,
                copy_text(sqlite3_column_text(stmt, place), NULL, 0, arena));
        else if (column->type == MEMBER_TEXT)
            *(const char **)pos = copy_text(sqlite3_column_text(stmt, place),
                                            before, column->offset, arena);
        else if (column->type == MEMBER_REAL)
            *(double *)pos = sqlite3_column_type(stmt, place) == SQLITE_NULL
                                 ? NAN
                                 : sqlite3_column_double(stmt, place);
        else if (column->type == MEMBER_U32)
            *(uint32_t *)pos = (uint32_t)sqlite3_column_int64(stmt, place);
        else
            *(int64_t *)pos = sqlite3_column_int64(stmt, place);
    }
}

/* Finds the checks of a query's columns. This is done once for each query. */
static void check_columns(struct query *query, const char *table)
{
    const int n = sqlite3_column_count(query->stmt);

    query->table = table;
    query->n_columns = n < STORE_MAX_COLUMNS ? n : STORE_MAX_COLUMNS;
    for (int i = 0; i < query->n_columns; i++) {
        const char *name = sqlite3_column_name(query->stmt, i);

        for (const struct store_list *list = store_lists; list->name; list++)
            for (size_t c = 0; c < list->n; c++) {
                const struct store_column *column = &list->columns[c];

                if (!strcmp(list->table, table) &&
                    !strcmp(column->name, name) && !column->names &&
                    !column->is_any)
                    query->fields[i] = column;
            }
    }
}

static bool are_shares(const struct store_column *field, sqlite3_stmt *stmt,
                       int column)
{
    double shares[REUSE_BINS];

    if (sqlite3_column_bytes(stmt, column) != (int)sizeof(shares))
        return false;
    memcpy(shares, sqlite3_column_blob(stmt, column), sizeof(shares));
    for (int i = 0; i < REUSE_BINS; i++)
        if (!(shares[i] >= field->min && shares[i] <= field->max))
            return false;
    return true;
}

static bool is_in_range(const struct store_column *field, sqlite3_stmt *stmt,
                        int column)
{
    const int type = sqlite3_column_type(stmt, column);
    double value = sqlite3_column_double(stmt, column);

    if (type == SQLITE_NULL)
        return field->or_null;
    if (field->is_blob)
        return type == SQLITE_BLOB && are_shares(field, stmt, column);
    if (field->type == MEMBER_TEXT && type == SQLITE_TEXT)
        value = (double)text_length(
            (const char *)sqlite3_column_text(stmt, column));
    else if (field->type == MEMBER_TEXT ||
             (type != SQLITE_INTEGER &&
              (type != SQLITE_FLOAT || field->type != MEMBER_REAL)))
        return false;
    return value >= field->min && value <= field->max;
}

/* Describes a wrong value for a message, such as "1e+300, not a number from 0
 * to 1e+06". */
static const char *say_wrong(char *text, size_t size,
                             const struct store_column *field,
                             sqlite3_stmt *stmt, int column)
{
    const int type = sqlite3_column_type(stmt, column);
    char value[40] = "NULL";

    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
        snprintf(value, sizeof(value), "%.15g",
                 sqlite3_column_double(stmt, column));
    else if (type == SQLITE_TEXT || type == SQLITE_BLOB)
        snprintf(value, sizeof(value), "%s of %d bytes",
                 type == SQLITE_TEXT ? "a text" : "a blob",
                 sqlite3_column_bytes(stmt, column));
    if (field->type == MEMBER_TEXT)
        snprintf(text, size, "%s, not a text of %.0f to %.0f characters", value,
                 field->min, field->max);
    else if (field->is_blob)
        snprintf(text, size, "%s, not %d doubles from 0 to 1", value,
                 REUSE_BINS);
    else
        snprintf(text, size, "%s, not %s from %.16g to %.16g", value,
                 field->type == MEMBER_REAL ? "a number" : "a whole number",
                 field->min, field->max);
    return text;
}

/* Describes a row by its key for a message. The key's columns are the first
 * ones in the list of columns. */
static const char *say_row(char *text, size_t size, const char *table,
                           sqlite3_stmt *stmt)
{
    int len = snprintf(text, size, "%s %lld", sqlite3_column_name(stmt, 0),
                       (long long)sqlite3_column_int64(stmt, 0));

    if (!strcmp(table, "sample_table"))
        snprintf(text + len, size - (size_t)len, ", %s %lld",
                 sqlite3_column_name(stmt, 1),
                 (long long)sqlite3_column_int64(stmt, 1));
    return text;
}

/* Checks that all fields of the current row are in range. */
static int check_row(const struct query *query, struct err *err)
{
    sqlite3_stmt *stmt = query->stmt;
    char row[80], wrong[160];

    for (int i = 0; i < query->n_columns; i++) {
        const struct store_column *field = query->fields[i];

        if (field && !is_in_range(field, stmt, i))
            return err_input(err, "cost database '%s': table %s, %s: %s is %s",
                             query->store->path, query->table,
                             say_row(row, sizeof(row), query->table, stmt),
                             field->name,
                             say_wrong(wrong, sizeof(wrong), field, stmt, i));
    }
    return 0;
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
        check_columns(query, query->listed->table);
    }
    for (size_t i = 0; !status && bound && bound[i]; i++)
        status = bind_row(query->stmt, &place, prepared->bound[i], bound[i]);
    return store_check(store, status, err);
}

int query_step(struct query *query, bool *has_row, struct err *err)
{
    int status = sqlite3_step(query->stmt);

    if (store_check(query->store, status, err) ||
        (status == SQLITE_ROW && check_row(query, err)))
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
        take_row(&query, item, n_found ? item - size : NULL, arena);
        rc = (statement->finish && statement->finish(&query, item, err)) ||
             query_step(&query, &has_row, err);
    }
    query_end(&query);
    *n = n_found;
    list = arena_keep(arena, list, n_found, size);
    return rc ? NULL : list;
}

/* Checks that the new schema accepts each row of a table. Without this check,
 * an upgrade would fail without naming the faulty row. */
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
        check_columns(&query, table);
    while (!rc && has_row)
        rc = query_step(&query, &has_row, err);
    sqlite3_finalize(query.stmt);
    buf_release(&sql);
    return rc;
}
