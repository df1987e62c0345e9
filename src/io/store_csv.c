/* SPDX-License-Identifier: MIT */
#include "io/store_csv.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/table.h"
#include "io/csv.h"
#include "io/store_fields.h"
#include "io/store_merge.h"
#include "io/store_sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FILE_TEXT(store_export_sql, "src/io/store_export.sql");
FILE_TEXT(store_samples_sql, "src/io/store_samples.sql");

/* --- writing a database as text --- */

static void add_blob(struct buf *out, const void *blob, size_t size)
{
    double number;

    for (size_t pos = 0; pos + sizeof(number) <= size; pos += sizeof(number)) {
        memcpy(&number, (const char *)blob + pos, sizeof(number));
        buf_printf(out, "%s%.17g", pos ? " " : "", number);
    }
}

static void add_value(struct buf *out, sqlite3_stmt *stmt, int column)
{
    const int type = sqlite3_column_type(stmt, column);

    if (type == SQLITE_FLOAT)
        buf_printf(out, "%.17g", sqlite3_column_double(stmt, column));
    else if (type == SQLITE_BLOB)
        add_blob(out, sqlite3_column_blob(stmt, column),
                 (size_t)sqlite3_column_bytes(stmt, column));
    else if (type != SQLITE_NULL)
        text_csv(out, (const char *)sqlite3_column_text(stmt, column));
}

/* Prints a number with the decimals that its column's name in store_samples.sql
 * gives. */
static void add_figure(struct buf *out, sqlite3_stmt *stmt, int column)
{
    const char *dot = strchr(sqlite3_column_name(stmt, column), '.');
    const double real = sqlite3_column_double(stmt, column);
    struct arena scratch = {0};

    if (sqlite3_column_type(stmt, column) != SQLITE_FLOAT)
        text_csv(out,
                 text_shown((const char *)sqlite3_column_text(stmt, column),
                            &scratch));
    else if (dot)
        buf_printf(out, "%.*f", (int)strtol(dot + 1, NULL, 10), real);
    else
        buf_printf(out, "%.6g", real);
    arena_release(&scratch);
}

/* Prints a line for each row of the statement's result. Returns SQLite's status
 * of the last step. */
static int add_rows(struct buf *out, sqlite3_stmt *stmt,
                    void (*add)(struct buf *out, sqlite3_stmt *stmt,
                                int column))
{
    int status;

    while ((status = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            buf_add(out, ",", i > 0);
            add(out, stmt, i);
        }
        buf_add(out, "\n", 1);
    }
    return status;
}

int store_to_csv(struct buf *out, struct store *store, struct err *err)
{
    struct buf sql = {0};
    sqlite3_stmt *stmt;
    int status, rc = store_ask(store, store_export_sql, &sql, err);

    for (const char *pos = sql.data; !rc && *pos;) {
        status = sqlite3_prepare_v2(store->db, pos, -1, &stmt, &pos);
        rc = store_check(store,
                         status ? status : add_rows(out, stmt, add_value), err);
        sqlite3_finalize(stmt);
    }
    buf_release(&sql);
    return rc;
}

int store_samples_to_csv(struct buf *out, struct store *store, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int status =
        sqlite3_prepare_v2(store->db, store_samples_sql, -1, &stmt, NULL);
    int rc = store_check(store, status, err) || store_verify(store, err);

    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *name = sqlite3_column_name(stmt, i);

        buf_printf(out, "%s%.*s", i ? "," : "", (int)strcspn(name, "."), name);
    }
    buf_add(out, "\n", 1);
    rc = rc || store_check(store, add_rows(out, stmt, add_figure), err);
    sqlite3_finalize(stmt);
    return rc ? -1 : 0;
}

int store_hash(uint64_t *hash, struct store *sorted, struct err *err)
{
    struct buf text = {0};
    int rc = store_to_csv(&text, sorted, err);

    *hash = hash_bytes(text.data, text.len, 0);
    buf_release(&text);
    return rc;
}

/* --- reading a database from text --- */

#define MAX_COLUMNS 128

struct csv_table {
    /* statement that inserts a row; NULL: the header has no column of this
     * table */
    sqlite3_stmt *insert;
    /* SQL types ("INTEGER", "REAL", "TEXT", "BLOB") that the text's columns
     * have in this table. NULL: the table has no such column. */
    const char *types[MAX_COLUMNS];
};
struct store_csv_reader {
    struct store *store;
    const char *names[MAX_COLUMNS]; /* column names of the text, in the arena */
    struct csv_table tables[STORE_N_TABLES];
    struct sample_line {
        int64_t id;
        size_t line;
    } * samples; /* [n_samples] samples that were read; owned */
    size_t n_samples, cap;
};

/* Prepares the statement that inserts a row into a table: "INSERT INTO table
 * (columns) VALUES (?2, ?5 ...)". The columns are those that the text and the
 * table have in common. The number of a parameter is the index of the column in
 * the text plus 1. */
static void prepare_insert(struct store_csv_reader *reader, size_t table,
                           size_t n_columns)
{
    sqlite3 *db = reader->store->db;
    struct csv_table *into = &reader->tables[table];
    struct buf sql = {0}, values = {0};

    for (size_t c = 1; c < n_columns; c++) {
        if (sqlite3_table_column_metadata(db, "main", store_tables[table],
                                          reader->names[c], &into->types[c],
                                          NULL, NULL, NULL, NULL))
            continue;
        if (sql.len)
            buf_printf(&sql, ", %s", reader->names[c]);
        else
            buf_printf(&sql, "INSERT INTO %s (%s", store_tables[table],
                       reader->names[c]);
        buf_printf(&values, "%s?%zu", values.len ? ", " : ") VALUES (", c + 1);
    }
    buf_printf(&sql, "%s)", sql.len ? values.data : "");
    sqlite3_prepare_v2(db, sql.data, -1, &into->insert, NULL);
    buf_release(&values);
    buf_release(&sql);
}

static int read_header(struct store_csv_reader *reader, const struct csv *csv,
                       struct err *err)
{
    size_t n;

    if (!csv->n_fields || strcmp(csv->fields[0], "table") != 0)
        return err_input(err, "the header does not begin with 'table', as that "
                              "of an exported cost database does");
    /* Only the first MAX_COLUMNS columns are read. A longer header has an
     * unknown or a repeated column among the first MAX_COLUMNS. */
    n = csv->n_fields < MAX_COLUMNS ? csv->n_fields : MAX_COLUMNS;
    for (size_t c = 0; c < n; c++)
        reader->names[c] = csv->fields[c];
    for (size_t i = 0; i < STORE_N_TABLES; i++)
        prepare_insert(reader, i, n);
    for (size_t c = 1; c < n; c++) {
        bool is_known = false;

        for (size_t i = 0; i < STORE_N_TABLES; i++)
            is_known |= reader->tables[i].types[c] != NULL;
        if (!is_known || text_choice(csv->fields, reader->names[c]) < (int)c)
            return err_input(err, "column '%s' is unknown or given twice",
                             reader->names[c]);
    }
    return 0;
}

/* Parses the shares of a reuse histogram, separated by blanks. Returns the
 * number of shares, or -1. */
static int read_blob(const char *text, double numbers[REUSE_BINS])
{
    char number[32];

    for (int n = 0; n < REUSE_BINS; n++) {
        const size_t len = strcspn(text, " ");

        snprintf(number, sizeof(number), "%.*s", (int)len, text);
        if (len >= sizeof(number) || !text_to_double(number, &numbers[n]) ||
            numbers[n] < 0 || numbers[n] > STORE_MAX_SHARE)
            return -1;
        if (!text[len])
            return n + 1;
        text += len + 1;
    }
    return -1;
}

/* Binds the value of a nonempty cell. Returns false if the value does not have
 * the type of its column. */
static bool bind_cell(sqlite3_stmt *stmt, int place, const char *type,
                      const char *text)
{
    double numbers[REUSE_BINS];
    uint64_t whole;
    int n;

    switch (*type) {
    case 'R':
        return text_to_double(text, numbers) &&
               !sqlite3_bind_double(stmt, place, *numbers);
    case 'B':
        n = read_blob(text, numbers);
        return n > 0 &&
               !sqlite3_bind_blob(stmt, place, numbers,
                                  n * (int)sizeof(*numbers), SQLITE_TRANSIENT);
    default: /* SQLite converts a text to an integer when it stores it */
        return (*type == 'T' || text_to_u64(text + (*text == '-'), &whole)) &&
               !sqlite3_bind_text(stmt, place, text, -1, SQLITE_STATIC);
    }
}

static int bind_record(const struct store_csv_reader *reader,
                       const struct csv *csv, const struct csv_table *table,
                       struct err *err)
{
    sqlite3_clear_bindings(table->insert);
    for (size_t c = 1; c < csv->n_fields; c++) {
        const char *type = table->types[c];
        const char *text = csv->fields[c];

        if (!type && *text)
            return err_input(err, "table '%s' has no column '%s'",
                             csv->fields[0], reader->names[c]);
        if (type && (*text || *type == 'T') &&
            !bind_cell(table->insert, (int)c + 1, type, text))
            return err_input(err, "%s '%s' is not %s", reader->names[c], text,
                             *type == 'I'   ? "a whole number"
                             : *type == 'R' ? "a number"
                                            : "17 shares separated by blanks");
    }
    return 0;
}

static int read_row(struct store_csv_reader *reader, const struct csv *csv,
                    struct err *err)
{
    const int idx = text_choice(store_tables, csv->fields[0]);
    const struct csv_table *table = &reader->tables[idx < 0 ? 0 : idx];
    int status;

    if (idx < 0 || !table->insert)
        return err_input(err,
                         idx < 0 ? "there is no table '%s'"
                                 : "the header has no column of '%s'",
                         csv->fields[0]);
    if (bind_record(reader, csv, table, err))
        return -1;
    status = sqlite3_step(table->insert);
    sqlite3_reset(table->insert);
    if (status != SQLITE_DONE)
        return err_input(err, "%s", sqlite3_errmsg(reader->store->db));
    if (strcmp(csv->fields[0], "sample") != 0)
        return 0;
    reader->samples = mem_room(reader->samples, reader->n_samples, &reader->cap,
                               sizeof(*reader->samples));
    reader->samples[reader->n_samples++] = (struct sample_line){
        sqlite3_last_insert_rowid(reader->store->db), csv->record_line};
    return 0;
}

static int read_record(void *reader, const struct csv *csv, struct err *err)
{
    if (!csv->n_records)
        return read_header(reader, csv, err);
    return csv->n_fields ? read_row(reader, csv, err) : 0;
}

/* Checks that each sample has all of its tables. The tables of a sample are on
 * other lines than the sample. */
static int check_samples(const struct store_csv_reader *reader, struct err *err)
{
    struct buf id = {0};
    int rc =
        store_ask(reader->store, "SELECT id FROM " STORE_PARTIAL, &id, err);

    for (size_t i = 0; !rc && *id.data && i < reader->n_samples; i++)
        if (reader->samples[i].id == strtoll(id.data, NULL, 10))
            rc = err_input(err, "%s:%zu: sample %s lacks some of its tables",
                           reader->store->path, reader->samples[i].line,
                           id.data);
    buf_release(&id);
    return rc;
}

int store_from_csv(struct store **out, const char *text, size_t len,
                   const char *source, struct arena *arena, struct err *err)
{
    struct store_csv_reader reader = {.store = NULL};
    int rc = store_open_memory(&reader.store, source, err) ||
             store_begin_write(reader.store, err) ||
             store_end(reader.store,
                       csv_read(text, len, source, read_record, &reader, arena,
                                err) ||
                           check_samples(&reader, err),
                       err);

    for (size_t i = 0; i < STORE_N_TABLES; i++)
        sqlite3_finalize(reader.tables[i].insert);
    mem_free(reader.samples);
    if (rc || store_verify(reader.store, err)) {
        store_close(reader.store);
        return -1;
    }
    *out = reader.store;
    return 0;
}

int store_csv_check(const char *text, size_t len, const char *source,
                    struct arena *arena, struct err *err)
{
    struct store *store;

    if (store_from_csv(&store, text, len, source, arena, err))
        return -1;
    store_close(store);
    return 0;
}
