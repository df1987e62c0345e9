/* SPDX-License-Identifier: MIT */
#include "io/tables_csv.h"

#include "base/text.h"
#include "io/csv.h"
#include "io/tables_columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS_LISTED 40

struct tables_csv_reader {
    const struct csv *csv; /* current record */
    /* Cells of the record. If the header has a column, cells.names has a name
     * for it, and field_of has the index of its field. */
    struct table_cells cells;
    size_t field_of[N_TABLE_COLUMNS];
    struct table *tables; /* tables read so far; owned; grows */
    size_t n_tables, cap;
    json_t *lines; /* owned; maps the name of a table to its line */
    /* name of the field that the options give for a column; NULL: none */
    const char *asked[N_TABLE_COLUMNS];
};

/* Checks that no earlier table of the list has the same name. */
static int check_name(const struct tables_csv_reader *reader, const char *name,
                      struct err *err)
{
    const json_t *line = json_object_get(reader->lines, name);

    if (line)
        return err_input(err, "the name '%s' is already in line %lld",
                         tables_shown(name, reader->cells.arena),
                         json_integer_value(line));
    json_object_set_new(reader->lines, name,
                        json_integer((json_int_t)reader->csv->record_line));
    return 0;
}

static int read_table(struct tables_csv_reader *reader, struct err *err)
{
    struct table_cells *cells = &reader->cells;
    struct table *table;

    reader->tables = mem_room(reader->tables, reader->n_tables, &reader->cap,
                              sizeof(*reader->tables));
    table = &reader->tables[reader->n_tables++];
    for (size_t c = 0; c < N_TABLE_COLUMNS; c++)
        if (cells->names[c])
            cells->texts[c] = reader->csv->fields[reader->field_of[c]];
    if (table_from_cells(table, cells, err))
        return -1;
    return check_name(reader, table->name, err);
}

/* Guesses the field of the header that the user meant for a column. A field is
 * a candidate if it resembles the name that the options give. It is also a
 * candidate if it resembles one of the column's names, or ends in one. Returns
 * NULL if no field is a candidate. */
static const char *nearest_field(const struct tables_csv_reader *reader,
                                 size_t column)
{
    const char *const *fields = reader->csv->fields;
    char *rest = arena_strdup(reader->cells.arena, table_columns[column].key);
    const char *asked = reader->asked[column], *nearest;

    nearest = asked ? text_nearest(fields, asked) : NULL;
    for (char *name; !nearest && (name = strtok_r(rest, "|", &rest));) {
        nearest = text_nearest(fields, name);
        for (size_t i = 0; !nearest && fields[i]; i++)
            if (strlen(fields[i]) > strlen(name) &&
                !strcmp(fields[i] + strlen(fields[i]) - strlen(name), name))
                nearest = fields[i];
    }
    return nearest;
}

/* Returns the hint that follows the message about a missing column. For an
 * import, it lists the header's columns. For other commands, it names the field
 * that an import could use for the column. */
static const char *say_columns(const struct tables_csv_reader *reader,
                               size_t column)
{
    const struct csv *csv = reader->csv;
    const char *nearest, *name = table_columns[column].key;

    nearest = nearest_field(reader, column);
    if (!reader->cells.options->columns)
        return !nearest || csv->n_fields == 1
                   ? ""
                   : text_say(reader->cells.arena,
                              "; 'tables import' with '--columns %.*s=%s' "
                              "takes it",
                              (int)strcspn(name, "|"), name,
                              tables_shown(nearest, reader->cells.arena));
    return text_say(
        reader->cells.arena, "; its columns are %s; %s '--columns %.*s=%s'",
        tables_listed(csv->fields, csv->n_fields, MAX_COLUMNS_LISTED,
                      reader->cells.arena),
        nearest ? "did you mean" : "name another one with",
        (int)strcspn(name, "|"), name,
        nearest ? tables_shown(nearest, reader->cells.arena) : "NAME");
}

/* Checks that the header has all required columns. csv_read adds "file:line: "
 * to the error message. */
static int check_columns(const struct tables_csv_reader *reader,
                         struct err *err)
{
    static const char *const needed[] = {
        [COLUMN_NAME] = "'name'",
        [COLUMN_ROWS] = "'num_embeddings' (nor 'rows' nor 'hash_size')",
        [COLUMN_DIM] = ("'dim' (nor 'embedding_dim'), and no option '--dim D' "
                        "sets the width"),
    };
    const char *const *names = reader->cells.names;

    for (size_t c = 0; c < N_TABLE_COLUMNS; c++)
        if (reader->asked[c] && !names[c])
            return err_input(
                err,
                "the header has no column '%s', which '--columns' asks for%s",
                tables_shown(reader->asked[c], reader->cells.arena),
                c < COLUMN_BIN_0 ? say_columns(reader, c) : "");
    for (size_t c = COLUMN_NAME; c <= COLUMN_DIM; c++)
        if (!names[c] && !(c == COLUMN_DIM && reader->cells.options->dim))
            return err_input(
                err, "the header has no column %s%s%s", needed[c],
                c == COLUMN_NAME && reader->csv->n_fields == 1
                    ? ", only one column; fields are separated by commas"
                    : "",
                say_columns(reader, c));
    for (unsigned k = REUSE_BINS; --k;)
        if (!names[COLUMN_BIN_0] != !names[COLUMN_BIN_0 + k])
            return err_input(
                err, "the header has no column 'bin_%u', but has other bins",
                names[COLUMN_BIN_0] ? k : 0);
    return 0;
}

/* Parses an import's option "COLUMN=FIELD,...", which gives the field for each
 * column. */
static int read_asked(struct tables_csv_reader *reader, struct err *err)
{
    const char *asked = reader->cells.options->columns;
    char *rest = arena_strdup(reader->cells.arena, asked ? asked : "");

    for (char *pair; (pair = strtok_r(rest, ",", &rest));) {
        char *field = strchr(pair, '=');
        size_t column = N_TABLE_COLUMNS;

        if (field) {
            *field++ = '\0';
            column = table_column(pair);
        }
        if (column == N_TABLE_COLUMNS || !*field || reader->asked[column])
            return err_usage(err,
                             "option '--columns' takes COLUMN=NAME,... with "
                             "each COLUMN of neuroshard-tables(5) once, as in "
                             "name=table_name,rows=num_rows; '%s' is %s",
                             tables_shown(pair, reader->cells.arena),
                             column == N_TABLE_COLUMNS ? "no such column"
                             : *field                  ? "given twice"
                                                       : "without a name");
        reader->asked[column] = field;
    }
    return 0;
}

/* Returns the column of a table list that a field of the header holds, or
 * N_TABLE_COLUMNS if it holds none. */
static size_t column_of(const struct tables_csv_reader *reader,
                        const char *field)
{
    size_t column = table_column(field);

    for (size_t c = 0; c < N_TABLE_COLUMNS; c++)
        if (reader->asked[c] && !strcmp(reader->asked[c], field))
            return c;
    return column < N_TABLE_COLUMNS && reader->asked[column] ? N_TABLE_COLUMNS
                                                             : column;
}

static int place_column(struct tables_csv_reader *reader, size_t field,
                        size_t column, struct err *err)
{
    const char *name = reader->csv->fields[field];

    const char *other = reader->cells.names[column];

    if (other && !strcmp(other, name))
        return err_input(err, "the header has column '%s' twice", name);
    if (other)
        return err_input(err,
                         "the header's columns '%s' and '%s' mean the same",
                         other, name);
    reader->field_of[column] = field;
    reader->cells.names[column] = name;
    return 0;
}

static int read_columns(struct tables_csv_reader *reader, struct err *err)
{
    const struct csv *csv = reader->csv;

    for (size_t i = 0; i < csv->n_fields; i++) {
        size_t column = column_of(reader, csv->fields[i]);

        if (column == N_TABLE_COLUMNS)
            json_object_set_new(reader->cells.unknown, csv->fields[i],
                                json_true());
        else if (place_column(reader, i, column, err))
            return -1;
    }
    if (check_columns(reader, err))
        return -1;
    tables_warn(
        &reader->cells,
        text_say(reader->cells.arena, "%s:%zu", csv->source, csv->record_line),
        "column");
    return 0;
}

static int read_record(void *ctx, const struct csv *csv, struct err *err)
{
    struct tables_csv_reader *reader = ctx;

    reader->csv = csv;
    if (csv->n_fields)
        return csv->n_records ? read_table(reader, err)
                              : read_columns(reader, err);
    if (reader->n_tables)
        return 0;
    return err_input(err, csv->n_records ? "no tables after the header"
                                         : "no header line and no tables");
}

int tables_from_csv(struct table_list *list, const char *text, size_t len,
                    const char *source, const struct tables_options *options,
                    struct arena *arena, struct err *err)
{
    struct tables_csv_reader reader = {
        .cells = {.options = options, .arena = arena, .unknown = json_object()},
        .lines = json_object()};
    int rc = read_asked(&reader, err) ||
             csv_read(text, len, source, read_record, &reader, arena, err);

    list->n_tables = reader.n_tables;
    list->tables = arena_keep(arena, reader.tables, reader.n_tables,
                              sizeof(*reader.tables));
    list->source = arena_strdup(arena, source);
    json_decref(reader.lines);
    json_decref(reader.cells.unknown);
    return rc ? -1 : 0;
}

/* --- writing --- */

/* True if the table has the default of a column. A default is written as an
 * empty cell. */
static bool is_default(const struct table *table, size_t column)
{
    static const size_t bytes[] = {[MEMBER_U32] = sizeof(uint32_t),
                                   [MEMBER_U64] = sizeof(uint64_t),
                                   [MEMBER_REAL] = sizeof(double),
                                   [MEMBER_TEXT] = sizeof(char *)};
    const size_t offset = table_columns[column].offset;
    struct table plain;

    table_init(&plain);
    if (table_columns[column].is_needed)
        return false;
    if (column == COLUMN_ZIPF)
        return table->skew_assumed ||
               (table->has_bins && table->zipf_alpha == DEFAULT_ZIPF_ALPHA);
    if (column >= COLUMN_BIN_0)
        return !table->has_bins;
    return !memcmp((const char *)table + offset, (const char *)&plain + offset,
                   bytes[table_columns[column].type]);
}

/* Prints a number with at least 6 digits. If 6 digits do not read back as the
 * same number, prints the fewest digits that do. */
static void add_real(struct buf *out, double x)
{
    char text[32];
    int digits = 6;

    do
        snprintf(text, sizeof(text), "%.*g", digits, x);
    while (strtod(text, NULL) != x && digits++ < 17);
    buf_printf(out, "%s", text);
}

static void add_kinds(struct buf *out, unsigned kinds)
{
    const char *separator = "";

    for (size_t i = 0; i < N_SHARD_KINDS; i++)
        if (kinds & shard_traits[i].kind) {
            buf_printf(out, "%s%s", separator, shard_traits[i].name);
            separator = "|";
        }
}

static void add_cell(struct buf *out, const struct table *table, size_t column)
{
    const struct place_field *format = &table_columns[column];
    const void *pos = (const char *)table + format->offset;

    if ((column == COLUMN_DIM && !table->dim) ||
        (column == COLUMN_POOLING && isnan(table->pooling_factor)))
        return; /* the value is unknown, so the cell stays empty */
    if (format->type == MEMBER_TEXT)
        text_csv(out, *(const char *const *)pos);
    else if (format->type == MEMBER_REAL)
        add_real(out, *(const double *)pos);
    else if (format->names)
        buf_printf(out, "%s", format->names[*(const uint32_t *)pos]);
    else if (column == COLUMN_SHARDING)
        add_kinds(out, *(const uint32_t *)pos);
    else
        buf_printf(out, "%" PRIu64,
                   format->type == MEMBER_U32 ? *(const uint32_t *)pos
                                              : *(const uint64_t *)pos);
}

void tables_to_csv(struct buf *out, const struct table_list *list)
{
    bool is_written[N_TABLE_COLUMNS] = {false};

    for (size_t i = 0; i < list->n_tables; i++)
        for (size_t c = 0; c < N_TABLE_COLUMNS; c++)
            is_written[c] |= !is_default(&list->tables[i], c);
    for (size_t line = 0; line <= list->n_tables; line++) {
        const struct table *table = line ? &list->tables[line - 1] : NULL;
        const char *separator = "";

        for (size_t c = 0; c < N_TABLE_COLUMNS; c++) {
            const char *names = table_columns[c].key;

            if (!is_written[c])
                continue;
            buf_printf(out, "%s", separator);
            separator = ",";
            if (!table)
                buf_add(out, names, strcspn(names, "|"));
            else if (!is_default(table, c))
                add_cell(out, table, c);
        }
        buf_add(out, "\n", 1);
    }
}
