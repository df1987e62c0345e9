/* SPDX-License-Identifier: MIT */
#include "io/named_rows.h"

#include "base/json.h"
#include "base/text.h"
#include "io/csv.h"

#include <assert.h>
#include <string.h>

struct csv_rows {
    struct named_rows *rows;
    /* index of the CSV field of each column; -1: the heading lacks it */
    int field_of[NAMED_ROWS_COLUMNS];
    struct arena *arena;
};

/* Returns "a,b,c", the names of the columns that a heading must have. */
static const char *required_names(const struct named_rows *rows,
                                  struct arena *arena)
{
    const char *all = rows->names[0];

    for (unsigned c = 1; c < rows->n_required; c++)
        all = arena_printf(arena, "%s,%s", all, rows->names[c]);
    return all;
}

static int read_heading(struct csv_rows *reader, const struct csv *csv,
                        struct err *err)
{
    const struct named_rows *rows = reader->rows;

    for (unsigned c = 0; rows->names[c]; c++) {
        reader->field_of[c] = text_choice(csv->fields, rows->names[c]);
        if (reader->field_of[c] < 0 && c < rows->n_required)
            return err_input(
                err,
                rows->n_required > 1 ? "the heading lacks '%s', one of %s"
                                     : "the heading lacks '%s'",
                rows->names[c], required_names(rows, reader->arena));
    }
    return 0;
}

static int read_record(void *ctx, const struct csv *csv, struct err *err)
{
    struct csv_rows *reader = ctx;
    struct named_rows *rows = reader->rows;
    const char *cells[NAMED_ROWS_COLUMNS];

    rows->line = csv->record_line;
    if (!csv->n_records)
        return read_heading(reader, csv, err);
    if (!csv->n_fields)
        return 0;
    for (unsigned c = 0; rows->names[c]; c++)
        cells[c] =
            reader->field_of[c] < 0 ? "" : csv->fields[reader->field_of[c]];
    rows->n++;
    return rows->read(rows->ctx, cells, err);
}

static int read_json(struct named_rows *rows, const char *text, size_t len,
                     const char *source, struct arena *arena, struct err *err)
{
    json_t *root = NULL;
    const size_t *lines;
    int rc = 0;

    if (json_parse(&root, text, len, source, err))
        return -1;
    lines = place_child_lines(text, len, 1, arena);
    for (size_t i = 0; !rc && i < json_array_size(root); i++) {
        const json_t *object = json_array_get(root, i);
        const struct arena_mark mark = arena_mark(arena);
        const char *cells[NAMED_ROWS_COLUMNS];

        rows->line = lines[i];
        rows->n++;
        for (unsigned c = 0; rows->names[c]; c++)
            cells[c] =
                json_cell(json_object_get(object, rows->names[c]), arena);
        if (rows->read(rows->ctx, cells, err))
            rc = err_prefix(err, "%s:%zu", source, rows->line);
        arena_rewind(arena, mark);
    }
    json_decref(root);
    return rc;
}

int named_rows_read(struct named_rows *rows, const char *text, size_t len,
                    const char *source, struct arena *arena, struct err *err)
{
    struct csv_rows reader = {.rows = rows, .arena = arena};
    const char *copy = arena_strndup(arena, text, len);
    const char first = copy[strspn(copy, " \t\r\n")];

    rows->n = 0;
    rows->line = 1;
    rows->is_cut = false;
    for (unsigned c = 0; rows->names[c]; c++)
        assert(c < NAMED_ROWS_COLUMNS);
    if (first == '[' || first == '{')
        return read_json(rows, text, len, source, arena, err);
    if (csv_read(text, len, source, read_record, &reader, arena, err))
        return -1;
    rows->is_cut = len && text[len - 1] != '\n';
    return 0;
}
