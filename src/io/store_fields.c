/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include <stdio.h>
#include <string.h>

#define MAX_COUNT 9007199254740992.0 /* 2^53: doubles still tell them apart */
#define MAX_U32 4294967295.0
#define MAX_I64 9223372036854775807.0
#define MAX_MS 1e9
#define MAX_TEXT 200
/* A share may be a mean of shares, which rounds. */
#define MAX_SHARE (1 + 1e-9)

#define INTEGER(table, column, min, max)              \
    {                                                 \
        table, column, FIELD_INTEGER, min, max, false \
    }
#define REAL(table, column, min, max)              \
    {                                              \
        table, column, FIELD_REAL, min, max, false \
    }
#define TEXT(table, column, min)                        \
    {                                                   \
        table, column, FIELD_TEXT, min, MAX_TEXT, false \
    }
#define TIMING(table, name)                    \
    REAL(table, name "median_ms", 0, MAX_MS),  \
        REAL(table, name "p10_ms", 0, MAX_MS), \
        REAL(table, name "p90_ms", 0, MAX_MS)

const struct store_field store_fields[] = {
    TEXT("setting", "device", 1),
    INTEGER("setting", "n_threads", 0, 1e6),
    INTEGER("setting", "batch", 1, MAX_U32),
    TEXT("setting", "isa", 1),
    TEXT("setting", "driver", 0),
    TEXT("setting", "cuda", 0),
    TEXT("setting", "host", 0),

    INTEGER("sample", "case_idx", 0, MAX_I64),
    INTEGER("sample", "part", 0, 1e6),
    INTEGER("sample", "n_tables", 0, 1e6),
    TIMING("sample", "forward_"),
    TIMING("sample", "backward_"),
    TIMING("sample", "total_"),
    TIMING("sample", "linearise_"),
    TIMING("sample", "sort_"),
    TIMING("sample", "update_"),
    REAL("sample", "sm_mhz", 0, 1e6),
    REAL("sample", "memory_mhz", 0, 1e6),
    REAL("sample", "temperature_c", 0, 1e6),
    REAL("sample", "power_w", 0, 1e6),
    INTEGER("sample", "n_iterations", 0, MAX_U32),
    INTEGER("sample", "flags", 0, MAX_U32),
    TEXT("sample", "version", 0),
    TEXT("sample", "started_at", 0),

    INTEGER("sample_table", "table_idx", 0, 1e6),
    INTEGER("sample_table", "n_rows", 1, MAX_COUNT),
    INTEGER("sample_table", "dim", 1, 1048576),
    REAL("sample_table", "pooling_factor", 0, 1e6),
    {"sample_table", "zipf_alpha", FIELD_REAL, 0, 100, true},
    REAL("sample_table", "n_unique", 0, MAX_COUNT),
    {"sample_table", "bins", FIELD_SHARES, 0, MAX_SHARE, false},

    TEXT("comm_sample", "kind", 1),
    INTEGER("comm_sample", "n_ranks", 1, 1e6),
    INTEGER("comm_sample", "n_hosts", 1, 1e6),
    INTEGER("comm_sample", "total_bytes", 0, MAX_COUNT),
    INTEGER("comm_sample", "max_bytes", 0, MAX_COUNT),
    TIMING("comm_sample", ""),
    INTEGER("comm_sample", "n_iterations", 0, MAX_U32),

    TEXT("ceiling", "device", 1),
    INTEGER("ceiling", "n_threads", 0, 1e6),
    TEXT("ceiling", "isa", 1),
    INTEGER("ceiling", "n_bytes", 0, MAX_COUNT),
    INTEGER("ceiling", "n", 0, MAX_COUNT),
    INTEGER("ceiling", "row_bytes", 0, MAX_U32),
    INTEGER("ceiling", "key_bits", 0, 64),
    TIMING("ceiling", ""),
    REAL("ceiling", "moved_bytes", 0, 1e18),
    INTEGER("ceiling", "n_iterations", 0, MAX_U32),
    INTEGER("ceiling", "flags", 0, MAX_U32),
};
const size_t n_store_fields = sizeof(store_fields) / sizeof(*store_fields);

void row_reader_init(struct row_reader *reader, const char *table,
                     sqlite3_stmt *stmt)
{
    *reader = (struct row_reader){.table = table};
    if (!table)
        return;
    reader->n_columns = sqlite3_column_count(stmt);
    for (int i = 0; i < reader->n_columns && i < STORE_MAX_COLUMNS; i++) {
        const char *name = sqlite3_column_name(stmt, i);

        for (size_t f = 0; name && f < n_store_fields; f++)
            if (!strcmp(store_fields[f].table, table) &&
                !strcmp(store_fields[f].column, name))
                reader->fields[i] = &store_fields[f];
    }
}

/* As SQL's length() counts. */
static double n_characters(const unsigned char *text)
{
    double n = 0;

    for (; text && *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

static bool are_shares(const struct store_field *field, sqlite3_stmt *stmt,
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

static bool is_in_range(const struct store_field *field, sqlite3_stmt *stmt,
                        int column)
{
    const int type = sqlite3_column_type(stmt, column);
    double value;

    if (type == SQLITE_NULL)
        return field->or_null;
    switch (field->type) {
    case FIELD_INTEGER:
        if (type != SQLITE_INTEGER)
            return false;
        value = (double)sqlite3_column_int64(stmt, column);
        break;
    case FIELD_REAL:
        if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
            return false;
        value = sqlite3_column_double(stmt, column);
        break;
    case FIELD_TEXT:
        if (type != SQLITE_TEXT)
            return false;
        value = n_characters(sqlite3_column_text(stmt, column));
        break;
    case FIELD_SHARES:
    default:
        return type == SQLITE_BLOB && are_shares(field, stmt, column);
    }
    return value >= field->min && value <= field->max;
}

/* "1e+300, not a number from 0 to 1e+06" */
static const char *say_wrong(char *text, size_t size,
                             const struct store_field *field,
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
    if (field->type == FIELD_TEXT)
        snprintf(text, size, "%s, not a text of %.0f to %.0f characters", value,
                 field->min, field->max);
    else if (field->type == FIELD_SHARES)
        snprintf(text, size, "%s, not %d doubles from 0 to 1", value,
                 REUSE_BINS);
    else
        snprintf(text, size, "%s, not %s from %.16g to %.16g", value,
                 field->type == FIELD_INTEGER ? "a whole number" : "a number",
                 field->min, field->max);
    return text;
}

/* The key of a row stands first in each list. */
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

int row_check(const struct row_reader *reader, const struct store *store,
              sqlite3_stmt *stmt, struct err *err)
{
    char row[80], wrong[160];

    for (int i = 0; i < reader->n_columns; i++) {
        const struct store_field *field = reader->fields[i];

        if (field && !is_in_range(field, stmt, i))
            return err_set(
                err, ERR_INPUT, "cost database '%s': table %s, %s: %s is %s",
                store->path, reader->table,
                say_row(row, sizeof(row), reader->table, stmt), field->column,
                say_wrong(wrong, sizeof(wrong), field, stmt, i));
    }
    return 0;
}
