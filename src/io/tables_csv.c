/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/text.h"
#include "io/csv.h"
#include "io/tables_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A column: its name and aliases with '|' between, the member of a table that
 * its cells give, and what they may be. */
struct column {
    const char *names;
    enum member_type type; /* by MEMBER_OF, like the next */
    size_t offset;
    double min, max; /* of a number; of whole ones 0x1p63 is INT64_MAX */
    const char *const *choices; /* of an enum, from 0, the last one NULL */
};

/* Those that are asked for by themselves come first. */
enum {
    COLUMN_NAME,
    COLUMN_ROWS,
    COLUMN_DIM,
    COLUMN_POOLING,
    COLUMN_ZIPF,
    COLUMN_SHARDING,
    COLUMN_DEVICE
};
#define TABLE(member) MEMBER_OF(struct table, member)
static const struct column columns[] = {
    {"name", TABLE(name), 0, 0, NULL},
    {"num_embeddings|rows|hash_size", TABLE(num_embeddings), 1, 0x1p63, NULL},
    {"dim|embedding_dim", TABLE(dim), 1, TABLES_MAX_DIM, NULL},
    {"pooling_factor|hotness|multi_hot", TABLE(pooling_factor), 0,
     TABLES_MAX_FACTOR, NULL},
    {"zipf_alpha", TABLE(zipf_alpha), 0, TABLE_MAX_ZIPF, NULL},
    {"sharding", TABLE(kinds), 1, SHARD_ALL_KINDS, NULL},
    {"device", MEMBER_U64, offsetof(struct table, device), 0, TABLES_MAX_DEVICE,
     NULL},
    {"num_outputs|num_features", TABLE(num_outputs), 0, TABLES_MAX_FACTOR,
     NULL},
    {"output", TABLE(output), 0, OUTPUT_SEQUENCE, table_output_names},
    {"precision", TABLE(precision), 0, N_PRECISIONS - 1, precision_names},
    {"comm_precision", TABLE(comm_precision), 0, N_PRECISIONS - 1,
     precision_names},
    {"optimizer", TABLE(optimizer), 0, N_OPTIMIZERS - 1, optimizer_names},
    {"row_order", TABLE(row_order), 0, N_ROW_ORDERS - 1, row_order_names},
    {"dedup", TABLE(dedup), TABLE_MIN_DEDUP, 1, NULL},
    {"group", TABLE(group), 0, 0, NULL},
    {"bin_0", TABLE(bins[0]), 0, 1, NULL}, /* and bin_1 ... likewise */
};
#define COLUMN_BIN_0 (sizeof(columns) / sizeof(*columns) - 1)
#define N_COLUMNS (COLUMN_BIN_0 + REUSE_BINS)

#define NO_FIELD SIZE_MAX
#define MAX_COLUMNS_LISTED 40

struct reader {
    struct csv csv;
    const struct tables_options *options;
    struct arena *arena;
    /* The header: which field holds a column (or NO_FIELD), by what name. */
    size_t field_of[N_COLUMNS];
    const char *spelled[N_COLUMNS]; /* in the text */
    size_t n_fields;
    struct table *tables; /* owned, grown */
    size_t n_tables, cap;
    json_t *lines; /* owned; where each table stands, by its name */
    const char *asked[N_COLUMNS]; /* fields that the options name, or NULL */
};

/* The record's cell; an absent column is a column of empty cells. */
static const char *cell(const struct reader *reader, size_t column)
{
    size_t field = reader->field_of[column];

    return field == NO_FIELD ? "" : reader->csv.fields[field];
}

/* Of a whole number; pins name the devices that there are. */
static uint64_t largest(const struct reader *reader,
                        const struct column *format)
{
    if (format == &columns[COLUMN_DEVICE] && reader->options->n_devices)
        return reader->options->n_devices - 1;
    return format->max == 0x1p63 ? INT64_MAX : (uint64_t)format->max;
}

/* False where the text is nothing that the column takes. */
static bool read_value(void *at, const struct reader *reader,
                       const struct column *format, const char *text)
{
    uint64_t n;
    double x;

    if (format->type == MEMBER_TEXT) {
        *(const char **)at = arena_strdup(reader->arena, text);
        return text_is_printable(text);
    }
    if (format->type == MEMBER_REAL) {
        if (!text_to_double(text, &x))
            return false;
        *(double *)at = x + 0.0; /* no -0 */
        return x >= format->min && x <= format->max;
    }
    if (format->choices)
        n = (uint64_t)text_choice(format->choices, text);
    else if (format == &columns[COLUMN_SHARDING])
        n = shard_kinds_from_list(text, '|');
    else if (!text_to_u64(text, &n))
        return false;
    if (format->type == MEMBER_U32)
        *(uint32_t *)at = (uint32_t)n;
    else
        *(uint64_t *)at = n;
    return n >= (uint64_t)format->min && n <= largest(reader, format);
}

/* What the column takes. */
static const char *say_wanted(const struct reader *reader,
                              const struct column *format)
{
    if (format->type == MEMBER_TEXT)
        return "printable text";
    if (format->choices)
        return text_list(format->choices, " or ", reader->arena);
    if (format == &columns[COLUMN_SHARDING])
        return "a list of table, column, row, grid and replicate with '|' "
               "between";
    if (format->type == MEMBER_REAL)
        return arena_printf(reader->arena, "a number from %g to %.0f",
                            format->min, format->max);
    return arena_printf(reader->arena, "a whole number from %.0f to %" PRIu64,
                        format->min, largest(reader, format));
}

/* An empty cell leaves the table as it is. Those who judge a cell or a column
 * leave "file:line: " to who reads the record. */
static int read_cell(struct table *table, const struct reader *reader,
                     size_t column, struct err *err)
{
    const size_t bin = column > COLUMN_BIN_0 ? column - COLUMN_BIN_0 : 0;
    const struct column *format = &columns[column - bin];
    void *at = (char *)table + format->offset + bin * sizeof(double);
    const char *text = cell(reader, column);

    if (!*text || read_value(at, reader, format, text))
        return 0;
    return err_set(err, ERR_INPUT, "%s '%s' is not %s", reader->spelled[column],
                   tables_shown(text, reader->arena),
                   say_wanted(reader, format));
}

static int check_bins(const struct reader *reader, struct table *table,
                      struct err *err)
{
    double sum = 0;
    unsigned n_given = 0, missing = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++) {
        if (*cell(reader, COLUMN_BIN_0 + k))
            n_given++;
        else
            missing = k;
        sum += table->bins[k];
    }
    table->has_bins = n_given > 0;
    if (n_given == 0)
        return 0;
    if (n_given < REUSE_BINS)
        return err_set(err, ERR_INPUT,
                       "bin_%u is empty, but other bins are given", missing);
    if (sum == 0 && table->pooling_factor > 0)
        return err_set(err, ERR_INPUT,
                       "all bins are 0, but the pooling factor is %g",
                       table->pooling_factor);
    if (sum != 0 && fabs(sum - 1) > TABLE_BINS_TOLERANCE)
        return err_set(err, ERR_INPUT, "the bins add up to %g, not to 1", sum);
    return 0;
}

static int read_table(const struct reader *reader, struct table *table,
                      struct err *err)
{
    table_init(table);
    table->dim = reader->options->dim;
    table->pooling_factor = 1;
    if (reader->csv.n_fields != reader->n_fields)
        return err_set(err, ERR_INPUT, "%zu fields, but the header has %zu",
                       reader->csv.n_fields, reader->n_fields);
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (read_cell(table, reader, c, err))
            return -1;
    if (!table->name)
        return err_set(err, ERR_INPUT, "the name is empty");
    if (!table->num_embeddings)
        return err_set(err, ERR_INPUT, "%s is empty",
                       reader->spelled[COLUMN_ROWS]);
    if (!table->dim)
        return err_set(err, ERR_INPUT,
                       "%s is empty; option '--dim D' fills empty cells",
                       reader->spelled[COLUMN_DIM]);
    if (check_bins(reader, table, err))
        return -1;
    table->skew_assumed = !table->has_bins && !*cell(reader, COLUMN_ZIPF);
    return 0;
}

/* No other has its name. */
static int check_name(const struct reader *reader, const char *name,
                      struct err *err)
{
    const json_t *line = json_object_get(reader->lines, name);

    if (line)
        return err_set(
            err, ERR_INPUT, "the name '%s' stands in line %lld already",
            tables_shown(name, reader->arena), json_integer_value(line));
    json_object_set_new(reader->lines, name,
                        json_integer((json_int_t)reader->csv.record_line));
    return 0;
}

static int read_tables(struct reader *reader, struct err *err)
{
    struct table *table;
    bool found;

    for (;;) {
        if (csv_next(&reader->csv, &found, err))
            return -1;
        if (!found)
            return 0;
        reader->tables = mem_room(reader->tables, reader->n_tables,
                                  &reader->cap, sizeof(*reader->tables));
        table = &reader->tables[reader->n_tables++];
        if (read_table(reader, table, err) ||
            check_name(reader, table->name, err))
            return err_prefix(err, "%s:%zu", reader->csv.source,
                              reader->csv.record_line);
    }
}

/* The column of that name or alias, or N_COLUMNS. */
static size_t find_column(const char *name)
{
    char bin[16];
    unsigned k = 0;

    for (size_t c = 0; c < COLUMN_BIN_0; c++)
        if (text_is_one_of(columns[c].names, name))
            return c;
    for (; k < REUSE_BINS; k++) {
        snprintf(bin, sizeof(bin), "bin_%u", k);
        if (!strcmp(bin, name))
            break;
    }
    return COLUMN_BIN_0 + k;
}

/* The field that was meant for a column, perhaps: it begins like what was asked
 * for or like one of the column's names, or ends in one. NULL where none
 * does. */
static const char *nearest_field(const struct reader *reader, size_t column)
{
    const struct csv *csv = &reader->csv;
    const char **fields =
        ARENA_NEW(reader->arena, const char *, csv->n_fields + 1);
    char *rest = arena_strdup(reader->arena, columns[column].names);
    const char *asked = reader->asked[column], *nearest;

    memcpy(fields, csv->fields, csv->n_fields * sizeof(*fields));
    nearest = asked ? text_nearest(fields, asked) : NULL;
    for (char *name; !nearest && (name = strtok_r(rest, "|", &rest));) {
        nearest = text_nearest(fields, name);
        for (size_t i = 0; !nearest && i < csv->n_fields; i++)
            if (strlen(fields[i]) > strlen(name) &&
                !strcmp(fields[i] + strlen(fields[i]) - strlen(name), name))
                nearest = fields[i];
    }
    return nearest;
}

/* What is added where a column is missing: to an import all columns, to others
 * the one that an import could take for it. */
static const char *say_columns(const struct reader *reader, size_t column)
{
    const struct csv *csv = &reader->csv;
    const char *nearest, *name = columns[column].names;

    nearest = nearest_field(reader, column);
    if (!reader->options->columns)
        return !nearest || csv->n_fields == 1
                   ? ""
                   : text_say(reader->arena,
                              "; 'tables import' with '--columns %.*s=%s' "
                              "takes it",
                              (int)strcspn(name, "|"), name,
                              tables_shown(nearest, reader->arena));
    return text_say(
        reader->arena, "; its columns are %s; %s '--columns %.*s=%s'",
        tables_listed((const char *const *)csv->fields, csv->n_fields,
                      MAX_COLUMNS_LISTED, reader->arena),
        nearest ? "did you mean" : "another is named by",
        (int)strcspn(name, "|"), name,
        nearest ? tables_shown(nearest, reader->arena) : "NAME");
}

/* The columns that have to be there; "file:line: " is left to read_header. */
static int check_columns(const struct reader *reader, struct err *err)
{
    const size_t *field_of = reader->field_of;
    unsigned n_bins = 0, missing = 0;

    for (size_t c = 0; c < N_COLUMNS; c++)
        if (reader->asked[c] && field_of[c] == NO_FIELD)
            return err_set(err, ERR_INPUT,
                           "the header has no column '%s', which '--columns' "
                           "asks for%s",
                           tables_shown(reader->asked[c], reader->arena),
                           c < COLUMN_BIN_0 ? say_columns(reader, c) : "");
    if (field_of[COLUMN_NAME] == NO_FIELD)
        return err_set(err, ERR_INPUT, "the header has no column 'name'%s%s",
                       reader->n_fields == 1
                           ? ", only one column; fields are separated by commas"
                           : "",
                       say_columns(reader, COLUMN_NAME));
    if (field_of[COLUMN_ROWS] == NO_FIELD)
        return err_set(err, ERR_INPUT,
                       "the header has no column 'num_embeddings' (nor 'rows' "
                       "nor 'hash_size')%s",
                       say_columns(reader, COLUMN_ROWS));
    if (field_of[COLUMN_DIM] == NO_FIELD && !reader->options->dim)
        return err_set(err, ERR_INPUT,
                       "the header has no column 'dim' (nor 'embedding_dim'), "
                       "and no option '--dim D' gives one width to all%s",
                       say_columns(reader, COLUMN_DIM));
    for (unsigned k = 0; k < REUSE_BINS; k++)
        if (field_of[COLUMN_BIN_0 + k] == NO_FIELD)
            missing = k;
        else
            n_bins++;
    if (n_bins && n_bins < REUSE_BINS)
        return err_set(err, ERR_INPUT,
                       "the header has no column 'bin_%u', but other bins",
                       missing);
    return 0;
}

/* "COLUMN=FIELD,...": under which names an import finds columns. */
static int read_asked(struct reader *reader, struct err *err)
{
    const char *asked = reader->options->columns;
    char *rest = arena_strdup(reader->arena, asked ? asked : "");

    for (char *pair; (pair = strtok_r(rest, ",", &rest));) {
        char *field = strchr(pair, '=');
        size_t column = N_COLUMNS;

        if (field) {
            *field++ = '\0';
            column = find_column(pair);
        }
        if (column == N_COLUMNS || !*field || reader->asked[column])
            return err_set(err, ERR_USAGE,
                           "option '--columns' takes COLUMN=NAME,... with each "
                           "COLUMN of neuroshard-tables(5) once, as in "
                           "name=table_name,rows=num_rows; '%s' is %s",
                           tables_shown(pair, reader->arena),
                           column == N_COLUMNS ? "no such column"
                           : *field            ? "there twice"
                                               : "without a name");
        reader->asked[column] = field;
    }
    return 0;
}

/* The column that a field of the header holds, or N_COLUMNS. */
static size_t column_of(const struct reader *reader, const char *field)
{
    size_t column = find_column(field);

    for (size_t c = 0; c < N_COLUMNS; c++)
        if (reader->asked[c] && !strcmp(reader->asked[c], field))
            return c;
    return column < N_COLUMNS && reader->asked[column] ? N_COLUMNS : column;
}

static int place_column(struct reader *reader, size_t field, size_t column,
                        struct err *err)
{
    const char *name = reader->csv.fields[field];

    if (reader->field_of[column] != NO_FIELD) {
        const char *other = reader->spelled[column];

        if (!strcmp(other, name))
            return err_set(err, ERR_INPUT, "the header has column '%s' twice",
                           name);
        return err_set(err, ERR_INPUT,
                       "the header's columns '%s' and '%s' are the same thing",
                       other, name);
    }
    reader->field_of[column] = field;
    reader->spelled[column] = name;
    return 0;
}

static int read_columns(struct reader *reader, struct err *err)
{
    const struct csv *csv = &reader->csv;
    const char **unknown =
        ARENA_NEW(reader->arena, const char *, csv->n_fields);
    size_t n_unknown = 0;
    const char *where =
        text_say(reader->arena, "%s:%zu", csv->source, csv->record_line);

    reader->n_fields = csv->n_fields;
    for (size_t c = 0; c < N_COLUMNS; c++)
        reader->field_of[c] = NO_FIELD;
    for (size_t i = 0; i < csv->n_fields; i++) {
        size_t column = column_of(reader, csv->fields[i]);

        if (column == N_COLUMNS)
            unknown[n_unknown++] = csv->fields[i];
        else if (place_column(reader, i, column, err))
            return -1;
    }
    if (check_columns(reader, err))
        return -1;
    tables_warn_unknown(reader->options, where, "columns", unknown, n_unknown,
                        reader->arena);
    if (reader->field_of[COLUMN_POOLING] == NO_FIELD)
        tables_warn(
            reader->options,
            text_say(reader->arena,
                     "%s: no column 'pooling_factor', so one look-up a sample "
                     "is assumed for every table",
                     where));
    return 0;
}

static int read_header(struct reader *reader, struct err *err)
{
    bool found;

    if (csv_next(&reader->csv, &found, err))
        return -1;
    if (!found)
        return err_set(
            err, ERR_INPUT,
            "%s:%zu: no header that names the columns, and no tables",
            reader->csv.source, reader->csv.record_line);
    if (read_columns(reader, err))
        return err_prefix(err, "%s:%zu", reader->csv.source,
                          reader->csv.record_line);
    return 0;
}

int tables_from_csv(struct table_list *list, const char *text, size_t len,
                    const char *source, const struct tables_options *options,
                    struct arena *arena, struct err *err)
{
    struct reader reader = {
        .options = options, .arena = arena, .lines = json_object()};
    char *copy = arena_strndup(arena, text, len);
    int rc = -1;

    if (read_asked(&reader, err) ||
        csv_init(&reader.csv, copy, len, source, err) ||
        read_header(&reader, err) || read_tables(&reader, err))
        goto out;
    if (!reader.n_tables) {
        err_set(err, ERR_INPUT, "%s:%zu: no tables after the header", source,
                reader.csv.record_line);
        goto out;
    }
    list->n_tables = reader.n_tables;
    list->tables = ARENA_NEW(arena, struct table, reader.n_tables);
    memcpy(list->tables, reader.tables,
           reader.n_tables * sizeof(reader.tables[0]));
    list->source = arena_strdup(arena, source);
    rc = 0;
out:
    mem_free(reader.tables);
    json_decref(reader.lines);
    csv_release(&reader.csv);
    return rc;
}

/* Whether all tables have the default there, which an empty cell means. */
static bool is_default(const struct table *table, size_t column, const void *at,
                       size_t bytes)
{
    struct table plain;

    table_init(&plain);
    if (column <= COLUMN_POOLING)
        return false;
    if (column == COLUMN_ZIPF)
        return table->skew_assumed ||
               (table->has_bins && table->zipf_alpha == DEFAULT_ZIPF_ALPHA);
    if (column >= COLUMN_BIN_0)
        return !table->has_bins;
    return !memcmp(at, (char *)&plain + columns[column].offset, bytes);
}

/* The number in as few digits as read back the same. */
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

/* Returns whether it is more than the default, an empty cell. */
static bool add_cell(struct buf *out, const struct table *table, size_t column)
{
    static const size_t bytes[] = {[MEMBER_U32] = sizeof(uint32_t),
                                   [MEMBER_U64] = sizeof(uint64_t),
                                   [MEMBER_REAL] = sizeof(double),
                                   [MEMBER_TEXT] = sizeof(char *)};
    const size_t bin = column > COLUMN_BIN_0 ? column - COLUMN_BIN_0 : 0;
    const struct column *format = &columns[column - bin];
    const void *at =
        (const char *)table + format->offset + bin * sizeof(double);

    if (is_default(table, column - bin, at, bytes[format->type]))
        return false;
    if (format->type == MEMBER_TEXT)
        csv_add(out, *(const char *const *)at);
    else if (format->type == MEMBER_REAL)
        add_real(out, *(const double *)at);
    else if (format->choices)
        buf_printf(out, "%s", format->choices[*(const uint32_t *)at]);
    else if (column == COLUMN_SHARDING)
        add_kinds(out, *(const uint32_t *)at);
    else if (format->type == MEMBER_U32)
        buf_printf(out, "%" PRIu32, *(const uint32_t *)at);
    else
        buf_printf(out, "%" PRIu64, *(const uint64_t *)at);
    return true;
}

void tables_to_csv(struct buf *out, const struct table_list *list)
{
    bool is_written[N_COLUMNS] = {false};
    struct buf ignored = {0};
    const char *separator = "";

    for (size_t i = 0; i < list->n_tables; i++)
        for (size_t c = 0; c < N_COLUMNS; c++)
            is_written[c] |= add_cell(&ignored, &list->tables[i], c);
    buf_release(&ignored);
    for (size_t c = 0; c < N_COLUMNS; c++) {
        const char *names = columns[c < COLUMN_BIN_0 ? c : COLUMN_BIN_0].names;

        if (!is_written[c])
            continue;
        buf_printf(out, "%s%.*s", separator, (int)strcspn(names, "|"), names);
        if (c > COLUMN_BIN_0) {
            out->len--;
            buf_printf(out, "%zu", c - COLUMN_BIN_0);
        }
        separator = ",";
    }
    for (size_t i = 0; i < list->n_tables; i++) {
        separator = "\n";
        for (size_t c = 0; c < N_COLUMNS; c++) {
            if (!is_written[c])
                continue;
            buf_printf(out, "%s", separator);
            add_cell(out, &list->tables[i], c);
            separator = ",";
        }
    }
    buf_printf(out, "\n");
}
