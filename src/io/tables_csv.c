/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/text.h"
#include "io/csv.h"
#include "io/tables_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum column {
    COLUMN_NAME,
    COLUMN_ROWS,
    COLUMN_DIM,
    COLUMN_POOLING,
    COLUMN_N_OUTPUTS,
    COLUMN_OUTPUT,
    COLUMN_PRECISION,
    COLUMN_COMM_PRECISION,
    COLUMN_OPTIMIZER,
    COLUMN_ZIPF,
    COLUMN_SHARDING,
    COLUMN_DEVICE,
    COLUMN_GROUP,
    COLUMN_BIN_0,
    N_COLUMNS = COLUMN_BIN_0 + REUSE_BINS
};

/* The name and its aliases, and the range of a number. */
static const struct column_format {
    const char *names[3];
    double min, max; /* of whole ones 0x1p63 is INT64_MAX */
} columns[COLUMN_BIN_0 + 1] = {
    [COLUMN_NAME] = {{"name"}, 0, 0},
    [COLUMN_ROWS] = {{"num_embeddings", "rows", "hash_size"}, 1, 0x1p63},
    [COLUMN_DIM] = {{"dim", "embedding_dim"}, 1, TABLES_MAX_DIM},
    [COLUMN_POOLING] = {{"pooling_factor", "hotness", "multi_hot"},
                        0,
                        TABLES_MAX_FACTOR},
    [COLUMN_N_OUTPUTS] = {{"num_outputs", "num_features"},
                          0,
                          TABLES_MAX_FACTOR},
    [COLUMN_OUTPUT] = {{"output"}, 0, 0},
    [COLUMN_PRECISION] = {{"precision"}, 0, 0},
    [COLUMN_COMM_PRECISION] = {{"comm_precision"}, 0, 0},
    [COLUMN_OPTIMIZER] = {{"optimizer"}, 0, 0},
    [COLUMN_ZIPF] = {{"zipf_alpha"}, 0, TABLE_MAX_ZIPF},
    [COLUMN_SHARDING] = {{"sharding"}, 0, 0},
    [COLUMN_DEVICE] = {{"device"}, 0, TABLES_MAX_DEVICE},
    [COLUMN_GROUP] = {{"group"}, 0, 0},
    [COLUMN_BIN_0] = {{"bin_0"}, 0, 1}, /* and bin_1 ... likewise */
};

#define NO_FIELD SIZE_MAX

struct reader {
    struct csv csv;
    const struct tables_options *options;
    /* The header: which field holds a column (or NO_FIELD), by what name. */
    size_t field_of[N_COLUMNS];
    const char *spelled[N_COLUMNS];
    size_t n_fields;
    struct table *tables; /* owned, grown */
    size_t *lines;        /* owned, grown; where each table stands */
    size_t n_tables, tables_cap, lines_cap;
};

/* Functions that judge a cell leave "file:line: " to read_tables. */

/* The record's cell; an absent column is a column of empty cells. */
static const char *cell(const struct reader *reader, enum column column)
{
    size_t field = reader->field_of[column];

    return field == NO_FIELD ? "" : reader->csv.fields[field];
}

static int bad_cell(const struct reader *reader, enum column column,
                    const char *what, struct err *err)
{
    char shown[TABLES_SHOWN_MAX];

    return err_set(err, ERR_INPUT, "%s '%s' is not %s", reader->spelled[column],
                   tables_shown(shown, cell(reader, column)), what);
}

/* The readers of one cell leave *out alone where it is empty. */

static int read_count(const struct reader *reader, enum column column,
                      uint64_t *out, struct err *err)
{
    const struct column_format *format = &columns[column];
    const uint64_t min = (uint64_t)format->min;
    uint64_t max = format->max == 0x1p63 ? INT64_MAX : (uint64_t)format->max, n;
    const char *text = cell(reader, column);
    char what[96];

    /* Pins name the devices that there are. */
    if (column == COLUMN_DEVICE && reader->options->n_devices)
        max = reader->options->n_devices - 1;
    if (!*text)
        return 0;
    if (!text_to_u64(text, &n) || n < min || n > max) {
        snprintf(what, sizeof(what),
                 "a whole number from %" PRIu64 " to %" PRIu64, min, max);
        return bad_cell(reader, column, what, err);
    }
    *out = n;
    return 0;
}

static int read_number(const struct reader *reader, enum column column,
                       double *out, struct err *err)
{
    const struct column_format *format =
        &columns[column < COLUMN_BIN_0 ? column : COLUMN_BIN_0];
    const char *text = cell(reader, column);
    char what[64];
    double x;

    if (!*text)
        return 0;
    if (!text_to_double(text, &x) || x < format->min || x > format->max) {
        snprintf(what, sizeof(what), "a number from %.0f to %.0f", format->min,
                 format->max);
        return bad_cell(reader, column, what, err);
    }
    *out = x + 0.0; /* no -0 */
    return 0;
}

/* A name or a group. */
static int read_text(const struct reader *reader, enum column column,
                     struct arena *arena, const char **out, struct err *err)
{
    const char *text = cell(reader, column);

    if (!*text)
        return 0;
    if (!text_is_printable(text))
        return bad_cell(reader, column, "printable text", err);
    *out = arena_strdup(arena, text);
    return 0;
}

/* One of the names, which `what` lists. */
static int read_choice(const struct reader *reader, enum column column,
                       const char *const *names, const char *what,
                       uint32_t *out, struct err *err)
{
    const char *text = cell(reader, column);
    int choice = text_choice(names, text);

    if (!*text)
        return 0;
    if (choice < 0)
        return bad_cell(reader, column, what, err);
    *out = (uint32_t)choice;
    return 0;
}

static int read_formats(const struct reader *reader, struct table *table,
                        struct err *err)
{
    static const char precisions[] = "fp32, fp16, bf16 or int8";

    if (read_choice(reader, COLUMN_OUTPUT, table_output_names,
                    "pooled or sequence", &table->output, err) ||
        read_choice(reader, COLUMN_PRECISION, precision_names, precisions,
                    &table->precision, err) ||
        read_choice(reader, COLUMN_COMM_PRECISION, precision_names, precisions,
                    &table->comm_precision, err))
        return -1;
    return read_choice(reader, COLUMN_OPTIMIZER, optimizer_names,
                       "sgd, rowwise_adagrad, adagrad or adam",
                       &table->optimizer, err);
}

/* "table|column" -> a mask of kinds. */
static int read_sharding(const struct reader *reader, struct table *table,
                         struct err *err)
{
    const char *text = cell(reader, COLUMN_SHARDING);
    unsigned kinds = shard_kinds_from_list(text, '|');

    if (!*text)
        return 0;
    if (!kinds)
        return bad_cell(reader, COLUMN_SHARDING,
                        "a list of table, column, row, grid and replicate with "
                        "'|' between",
                        err);
    table->kinds = kinds;
    return 0;
}

static int read_bins(const struct reader *reader, struct table *table,
                     struct err *err)
{
    double sum = 0;
    unsigned n_given = 0, missing = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++) {
        enum column column = (enum column)(COLUMN_BIN_0 + k);

        if (read_number(reader, column, &table->bins[k], err))
            return -1;
        if (*cell(reader, column))
            n_given++;
        else
            missing = k;
        sum += table->bins[k];
    }
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
    table->has_bins = true;
    return 0;
}

/* Name, rows and columns: what has no default. */
static int read_shape(const struct reader *reader, struct table *table,
                      struct arena *arena, struct err *err)
{
    uint64_t dim = reader->options->dim;

    if (read_text(reader, COLUMN_NAME, arena, &table->name, err))
        return -1;
    if (!table->name)
        return err_set(err, ERR_INPUT, "the name is empty");
    if (read_count(reader, COLUMN_ROWS, &table->num_embeddings, err) ||
        read_count(reader, COLUMN_DIM, &dim, err))
        return -1;
    if (!table->num_embeddings)
        return err_set(err, ERR_INPUT, "%s is empty",
                       reader->spelled[COLUMN_ROWS]);
    if (!dim)
        return err_set(err, ERR_INPUT,
                       "%s is empty; option '--dim D' fills empty cells",
                       reader->spelled[COLUMN_DIM]);
    table->dim = (uint32_t)dim;
    return 0;
}

static int read_table(const struct reader *reader, struct table *table,
                      struct arena *arena, struct err *err)
{
    uint64_t device = UINT64_MAX;

    table_init(table);
    table->pooling_factor = 1;
    if (reader->csv.n_fields != reader->n_fields)
        return err_set(err, ERR_INPUT, "%zu fields, but the header has %zu",
                       reader->csv.n_fields, reader->n_fields);
    if (read_shape(reader, table, arena, err) ||
        read_number(reader, COLUMN_POOLING, &table->pooling_factor, err) ||
        read_number(reader, COLUMN_N_OUTPUTS, &table->num_outputs, err) ||
        read_number(reader, COLUMN_ZIPF, &table->zipf_alpha, err) ||
        read_bins(reader, table, err) || read_formats(reader, table, err) ||
        read_sharding(reader, table, err) ||
        read_count(reader, COLUMN_DEVICE, &device, err) ||
        read_text(reader, COLUMN_GROUP, arena, &table->group, err))
        return -1;
    table->skew_assumed = !table->has_bins && !*cell(reader, COLUMN_ZIPF);
    if (device != UINT64_MAX)
        table->device = (int64_t)device;
    return 0;
}

static int read_tables(struct reader *reader, struct arena *arena,
                       struct err *err)
{
    bool found;

    for (;;) {
        if (csv_next(&reader->csv, &found, err))
            return -1;
        if (!found)
            return 0;
        reader->tables = mem_room(reader->tables, reader->n_tables,
                                  &reader->tables_cap, sizeof(struct table));
        reader->lines = mem_room(reader->lines, reader->n_tables,
                                 &reader->lines_cap, sizeof(size_t));
        if (read_table(reader, &reader->tables[reader->n_tables], arena, err))
            return err_prefix(err, "%s:%zu", reader->csv.source,
                              reader->csv.record_line);
        reader->lines[reader->n_tables++] = reader->csv.record_line;
    }
}

/* The column of that name or alias, or N_COLUMNS. */
static unsigned find_column(const char *name)
{
    char bin[16];
    unsigned k = 0;

    for (unsigned c = 0; c < COLUMN_BIN_0; c++)
        for (unsigned i = 0; i < 3 && columns[c].names[i]; i++)
            if (!strcmp(columns[c].names[i], name))
                return c;
    for (; k < REUSE_BINS; k++) {
        snprintf(bin, sizeof(bin), "bin_%u", k);
        if (!strcmp(bin, name))
            break;
    }
    return COLUMN_BIN_0 + k;
}

/* The columns that have to be there; "file:line: " is left to read_header. */
static int check_columns(const struct reader *reader, struct err *err)
{
    const size_t *field_of = reader->field_of;
    unsigned n_bins = 0, missing = 0;

    if (field_of[COLUMN_NAME] == NO_FIELD)
        return err_set(err, ERR_INPUT, "the header has no column 'name'%s",
                       reader->n_fields == 1
                           ? ", only one column; fields are separated by commas"
                           : "");
    if (field_of[COLUMN_ROWS] == NO_FIELD)
        return err_set(err, ERR_INPUT,
                       "the header has no column 'num_embeddings' (nor 'rows' "
                       "nor 'hash_size')");
    if (field_of[COLUMN_DIM] == NO_FIELD && !reader->options->dim)
        return err_set(err, ERR_INPUT,
                       "the header has no column 'dim' (nor 'embedding_dim'), "
                       "and no option '--dim D' gives one width to all");
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

static int place_column(struct reader *reader, size_t field, unsigned column,
                        struct arena *arena, struct err *err)
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
    reader->spelled[column] = arena_strdup(arena, name);
    return 0;
}

static int read_columns(struct reader *reader, struct arena *arena,
                        struct err *err)
{
    const struct csv *csv = &reader->csv;
    const char **unknown = ARENA_NEW(arena, const char *, csv->n_fields);
    size_t n_unknown = 0;
    char where[256];

    reader->n_fields = csv->n_fields;
    for (unsigned c = 0; c < N_COLUMNS; c++)
        reader->field_of[c] = NO_FIELD;
    for (size_t i = 0; i < csv->n_fields; i++) {
        unsigned column = find_column(csv->fields[i]);

        if (column == N_COLUMNS)
            unknown[n_unknown++] = csv->fields[i];
        else if (place_column(reader, i, column, arena, err))
            return -1;
    }
    if (check_columns(reader, err))
        return -1;
    snprintf(where, sizeof(where), "%s:%zu", csv->source, csv->record_line);
    tables_warn_unknown(reader->options, where, "columns", unknown, n_unknown);
    if (reader->field_of[COLUMN_POOLING] == NO_FIELD)
        tables_warn(reader->options,
                    "%s: no column 'pooling_factor', so one look-up a sample "
                    "is assumed for every table",
                    where);
    return 0;
}

static int read_header(struct reader *reader, struct arena *arena,
                       struct err *err)
{
    bool found;

    if (csv_next(&reader->csv, &found, err))
        return -1;
    if (!found)
        return err_set(err, ERR_INPUT,
                       "%s:%zu: no header that names the columns, and no "
                       "tables",
                       reader->csv.source, reader->csv.record_line);
    if (read_columns(reader, arena, err))
        return err_prefix(err, "%s:%zu", reader->csv.source,
                          reader->csv.record_line);
    return 0;
}

/* By a set of the names, each with its line. */
static int check_unique(const struct reader *reader, struct err *err)
{
    json_t *lines = json_object();
    char shown[TABLES_SHOWN_MAX];
    int rc = 0;

    for (size_t i = 0; i < reader->n_tables && !rc; i++) {
        const char *name = reader->tables[i].name;
        const json_t *line = json_object_get(lines, name);

        if (line)
            rc = err_set(err, ERR_INPUT,
                         "%s:%zu: the name '%s' stands in line %lld already",
                         reader->csv.source, reader->lines[i],
                         tables_shown(shown, name), json_integer_value(line));
        json_object_set_new(lines, name,
                            json_integer((json_int_t)reader->lines[i]));
    }
    json_decref(lines);
    return rc;
}

int tables_from_csv(struct table_list *list, const char *text, size_t len,
                    const char *source, const struct tables_options *options,
                    struct arena *arena, struct err *err)
{
    struct reader reader = {.options = options};
    char *copy = arena_strndup(arena, text, len);
    int rc = -1;

    if (csv_init(&reader.csv, copy, len, source, err))
        goto out;
    if (read_header(&reader, arena, err) || read_tables(&reader, arena, err))
        goto out;
    if (!reader.n_tables) {
        err_set(err, ERR_INPUT, "%s:%zu: no tables after the header", source,
                reader.csv.record_line);
        goto out;
    }
    if (check_unique(&reader, err))
        goto out;
    list->n_tables = reader.n_tables;
    list->tables = ARENA_NEW(arena, struct table, reader.n_tables);
    memcpy(list->tables, reader.tables,
           reader.n_tables * sizeof(reader.tables[0]));
    list->source = arena_strdup(arena, source);
    rc = 0;
out:
    mem_free(reader.tables);
    mem_free(reader.lines);
    csv_release(&reader.csv);
    return rc;
}
