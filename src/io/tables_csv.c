/* SPDX-License-Identifier: MIT */
#include "io/tables_csv.h"

#include "base/text.h"
#include "io/csv.h"
#include "io/tables_columns.h"
#include "io/tables_header.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tables_csv_reader {
    const struct csv *csv; /* current record */
    struct tables_header header;
    struct table_cells cells; /* cells of the record */
    struct table *tables;     /* tables read so far; owned; grows */
    size_t n_tables, cap;
    json_t *lines; /* owned; maps the name of a table to its line */
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
            cells->texts[c] = reader->csv->fields[reader->header.field_of[c]];
    if (table_from_cells(table, cells, err))
        return -1;
    return check_name(reader, table->name, err);
}

static int read_columns(struct tables_csv_reader *reader, struct err *err)
{
    const struct csv *csv = reader->csv;

    if (tables_header_read(&reader->header, csv, err))
        return -1;
    memcpy(reader->cells.names, reader->header.names,
           sizeof(reader->cells.names));
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
        .header = {.options = options, .arena = arena},
        .lines = json_object()};
    int rc;

    reader.header.unknown = reader.cells.unknown;
    rc = tables_header_asked(&reader.header, err) ||
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
    if (column >= COLUMN_REACH_0)
        return (column - COLUMN_REACH_0) % REACH_WINDOWS >= table->n_reach;
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

static void add_tiers(struct buf *out, unsigned tiers)
{
    const char *separator = "";

    for (size_t i = 0; i < N_TIERS; i++)
        if (tiers & 1u << i) {
            buf_printf(out, "%s%s", separator, tier_names[i]);
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
    else if (column == COLUMN_TIER)
        add_tiers(out, *(const uint32_t *)pos);
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
