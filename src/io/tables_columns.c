/* SPDX-License-Identifier: MIT */
#include "io/tables_columns.h"

#include "base/printable.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of unknown names that a warning lists. */
#define MAX_LISTED 8

#define TABLE(member) MEMBER_OF(struct table, member)
#define BIN(k)                                       \
    {                                                \
        "bin_" #k, TABLE(bins[k]), false, 0, 1, NULL \
    }
#define BINS_0_TO_16                                                        \
    BIN(0), BIN(1), BIN(2), BIN(3), BIN(4), BIN(5), BIN(6), BIN(7), BIN(8), \
        BIN(9), BIN(10), BIN(11), BIN(12), BIN(13), BIN(14), BIN(15), BIN(16)
#define REACH(k)                                           \
    {                                                      \
        "reach_" #k, TABLE(reach[k]), false, 0, 1e18, NULL \
    }
#define MISS(k)                                            \
    {                                                      \
        "miss_" #k, TABLE(misses[k]), false, 0, 1e18, NULL \
    }
#define WINDOWS_0_TO_16(COLUMN)                                             \
    COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3), COLUMN(4), COLUMN(5),       \
        COLUMN(6), COLUMN(7), COLUMN(8), COLUMN(9), COLUMN(10), COLUMN(11), \
        COLUMN(12), COLUMN(13), COLUMN(14), COLUMN(15), COLUMN(16)
/* Columns of a table list. In an optional column, an empty cell gives the
 * default. */
const struct place_field table_columns[N_TABLE_COLUMNS] = {
    {"name", TABLE(name), true, 0, 0, NULL},
    {"num_embeddings|rows|hash_size", TABLE(num_embeddings), true, 1, 0x1p63,
     NULL},
    {"dim|embedding_dim", TABLE(dim), true, 1, TABLES_MAX_DIM, NULL},
    {"pooling_factor|hotness|multi_hot", TABLE(pooling_factor), true, 0,
     TABLES_MAX_FACTOR, NULL},
    {"zipf_alpha", TABLE(zipf_alpha), false, 0, TABLE_MAX_ZIPF, NULL},
    {"sharding", TABLE(kinds), false, 1, SHARD_ALL_KINDS, NULL},
    {"device", MEMBER_U64, offsetof(struct table, device), false, 0,
     TABLES_MAX_DEVICE, NULL},
    {"num_outputs|num_features", TABLE(num_outputs), false, 0,
     TABLES_MAX_FACTOR, NULL},
    {"output", TABLE(output), false, 0, 0, table_output_names},
    {"precision", TABLE(precision), false, 0, 0, precision_names},
    {"comm_precision", TABLE(comm_precision), false, 0, 0, precision_names},
    {"optimizer", TABLE(optimizer), false, 0, 0, optimizer_names},
    {"row_order", TABLE(row_order), false, 0, 0, row_order_names},
    {"dedup", TABLE(dedup), false, TABLE_MIN_DEDUP, 1, NULL},
    {"rows_over", TABLE(rows_over), false, 0, 0, rows_over_names},
    {"group", TABLE(group), false, 0, 0, NULL},
    {"row_overhead_bytes", TABLE(row_overhead_bytes), false, 0,
     TABLE_MAX_ROW_OVERHEAD, NULL},
    {"min_width", TABLE(min_width), false, 0, TABLES_MAX_DIM, NULL},
    {"forward_factor", TABLE(forward_factor), false, TABLE_MIN_FACTOR,
     TABLE_MAX_FACTOR, NULL},
    {"backward_factor", TABLE(backward_factor), false, TABLE_MIN_FACTOR,
     TABLE_MAX_FACTOR, NULL},
    {"tier", TABLE(tiers), false, 1, ALL_TIERS, NULL},
    BINS_0_TO_16,
    WINDOWS_0_TO_16(REACH),
    WINDOWS_0_TO_16(MISS),
};

size_t table_column(const char *name)
{
    size_t c = 0;

    while (c < N_TABLE_COLUMNS && text_which(table_columns[c].key, name) < 0)
        c++;
    return c;
}

/* Returns the largest whole number that a column accepts. For the column of
 * pins, it is the number of the last existing device. */
static uint64_t largest(const struct table_cells *cells, size_t column)
{
    if (column == COLUMN_DEVICE && cells->options->n_devices)
        return cells->options->n_devices - 1;
    return table_columns[column].names || table_columns[column].max == 0x1p63
               ? INT64_MAX
               : (uint64_t)table_columns[column].max;
}

/* Parses a whole number, "12" or "12.0". Programs write "12.0" if the column
 * had a missing value somewhere. */
static bool read_whole(const char *text, uint64_t *out, struct arena *arena)
{
    const size_t len = strcspn(text, ".");

    return text[len] && text[len + 1] &&
                   strspn(text + len + 1, "0") == strlen(text + len + 1)
               ? text_to_u64(arena_strndup(arena, text, len), out)
               : text_to_u64(text, out);
}

/* Moves a word behind a prefix that it may have. */
static char *without(char *word, const char *prefix)
{
    const size_t len = strlen(prefix);

    return strncmp(word, prefix, len) ? word : word + len;
}

/* Returns the enum value that has a name, ignoring case; -1 if the name is
 * unknown. FBGEMM puts "EmbOptimType." or "exact_" before the name of an
 * optimizer, and writes "row_wise" for "rowwise". PyTorch and TorchRec put
 * "torch." or "DataType." before the name of a precision. */
static int read_choice(const char *const *names, const char *text,
                       struct arena *arena)
{
    static const struct {
        const char *words;
        enum precision precision;
    } longer[] = {{"float32|float", PRECISION_FP32},
                  {"float16|half", PRECISION_FP16},
                  {"bfloat16", PRECISION_BF16}};
    char *word = arena_strdup(arena, text), *split;

    for (char *p = word; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    if (names == optimizer_names) {
        word = without(without(word, "emboptimtype."), "exact_");
        split = strstr(word, "row_wise");
        if (split)
            memmove(split + 3, split + 4, strlen(split + 4) + 1);
    }
    if (names == precision_names) {
        word = without(without(word, "torch."), "datatype.");
        for (size_t i = 0; i < sizeof(longer) / sizeof(*longer); i++)
            if (text_which(longer[i].words, word) >= 0)
                return (int)longer[i].precision;
    }
    return text_choice(names, word);
}

/* Stores the value of a cell. Returns false if the column does not accept the
 * cell's text. */
static bool read_value(void *pos, const struct table_cells *cells,
                       size_t column)
{
    const struct place_field *format = &table_columns[column];
    const char *text = cells->texts[column];
    uint64_t n;
    double x;

    if (format->type == MEMBER_TEXT) {
        *(const char **)pos = arena_strdup(cells->arena, text);
        return text_is_printable(text);
    }
    if (format->type == MEMBER_REAL) {
        if (!text_to_double(text, &x))
            return false;
        *(double *)pos = x + 0.0; /* -0 becomes 0 */
        return x >= format->min && x <= format->max;
    }
    if (format->names)
        n = (uint64_t)read_choice(format->names, text, cells->arena);
    else if (column == COLUMN_SHARDING)
        n = shard_kinds_from_list(text, '|');
    else if (column == COLUMN_TIER)
        n = tiers_from_list(text, '|');
    else if (!read_whole(text, &n, cells->arena))
        return false;
    if (format->type == MEMBER_U32)
        *(uint32_t *)pos = (uint32_t)n;
    else
        *(uint64_t *)pos = n;
    return n >= (uint64_t)format->min && n <= largest(cells, column);
}

/* Describes the values that a column accepts, for a message. */
static const char *say_wanted(const struct table_cells *cells, size_t column)
{
    const struct place_field *format = &table_columns[column];

    if (format->type == MEMBER_TEXT)
        return "printable text";
    if (format->names)
        return text_list(format->names, " or ", cells->arena);
    if (column == COLUMN_SHARDING)
        return "a list of table, column, row, grid and replicate, separated by "
               "'|'";
    if (column == COLUMN_TIER)
        return "a list of hbm, cached and host, separated by '|'";
    if (format->type == MEMBER_REAL)
        return arena_printf(cells->arena, "a number from %g to %.0f",
                            format->min, format->max);
    return arena_printf(cells->arena, "a whole number from %.0f to %" PRIu64,
                        format->min, largest(cells, column));
}

static bool is_given(const struct table_cells *cells, size_t column)
{
    return cells->texts[column] && *cells->texts[column];
}

static int check_bins(const struct table_cells *cells, struct table *table,
                      struct err *err)
{
    double sum = 0;

    table->has_bins = is_given(cells, COLUMN_BIN_0);
    for (unsigned k = 0; k < REUSE_BINS; k++) {
        if (is_given(cells, COLUMN_BIN_0 + k) != table->has_bins)
            return err_input(err, "bin_%u is empty, but other bins are given",
                             table->has_bins ? k : 0);
        sum += table->bins[k];
    }
    if (!table->has_bins)
        return 0;
    if (sum == 0 && table->pooling_factor > 0)
        return err_input(err, "all bins are 0, but the pooling factor is %g",
                         table->pooling_factor);
    if (sum != 0 && fabs(sum - 1) > TABLE_BINS_TOLERANCE)
        return err_input(err, "the bins add up to %g, not to 1", sum);
    return 0;
}

/* The given windows are the first ones, and each has reach and misses. */
static int check_reach(const struct table_cells *cells, struct table *table,
                       struct err *err)
{
    unsigned n = 0, k;

    while (n < REACH_WINDOWS && is_given(cells, COLUMN_REACH_0 + n))
        n++;
    for (k = 0; k < REACH_WINDOWS; k++) {
        if (k >= n && is_given(cells, COLUMN_REACH_0 + k))
            return err_input(err, "reach_%u is empty, but reach_%u is given", n,
                             k);
        if (is_given(cells, COLUMN_MISS_0 + k) != (k < n))
            return err_input(err, "%s_%u is empty, but %s_%u is given",
                             k < n ? "miss" : "reach", k,
                             k < n ? "reach" : "miss", k);
    }
    table->n_reach = n;
    k = table_wrong_reach(table);
    if (k == REACH_WINDOWS)
        return 0;
    return err_input(
        err,
        "reach_%u %g and miss_%u %g are impossible%s: reach is at most the "
        "rows, misses never grow, and reach grows by 2^k times a number "
        "between "
        "two successive misses",
        k, table->reach[k], k, table->misses[k],
        k ? text_say(cells->arena, " after reach_%u %g and miss_%u %g", k - 1,
                     table->reach[k - 1], k - 1, table->misses[k - 1])
          : "");
}

/* True if a table lacks a required value: no cell and no option gives it. An
 * import keeps an empty cell, but does not go without any lookups. */
static bool is_missing(const struct table *table,
                       const struct table_cells *cells, size_t column)
{
    const struct tables_options *options = cells->options;

    if (is_given(cells, column))
        return false;
    if (column == COLUMN_ROWS)
        return true;
    if (column == COLUMN_DIM)
        return !options->keeps_unknown && !table->dim;
    return isnan(table->pooling_factor) &&
           (!options->keeps_unknown ||
            (options->columns && !cells->texts[column]));
}

int table_from_cells(struct table *table, const struct table_cells *cells,
                     struct err *err)
{
    table_init(table);
    table->dim = cells->options->dim;
    table->pooling_factor =
        cells->options->pooling > 0 ? cells->options->pooling : NAN;
    for (size_t c = 0; c < N_TABLE_COLUMNS; c++)
        if (is_given(cells, c) &&
            !read_value((char *)table + table_columns[c].offset, cells, c))
            return err_input(err, "%s '%s' is not %s", cells->names[c],
                             tables_shown(cells->texts[c], cells->arena),
                             say_wanted(cells, c));
    if (!table->name)
        return err_input(err, "the name is empty");
    for (size_t c = COLUMN_ROWS; c <= COLUMN_POOLING; c++)
        if (is_missing(table, cells, c))
            return err_input(
                err, "%s is %s%s",
                cells->names[c] ? cells->names[c] : "pooling_factor",
                cells->texts[c] ? "empty" : "missing",
                c == COLUMN_ROWS  ? ""
                : c == COLUMN_DIM ? "; option '--dim D' fills empty cells"
                : cells->texts[c] ? "; option '--pooling P' fills empty cells"
                                  : "; option '--pooling P' gives it");
    if (check_bins(cells, table, err) || check_reach(cells, table, err))
        return -1;
    table->skew_assumed = !table->has_bins && !is_given(cells, COLUMN_ZIPF);
    return 0;
}

void tables_warn(const struct table_cells *cells, const char *where,
                 const char *what)
{
    const struct tables_options *options = cells->options;
    const size_t n = json_object_size(cells->unknown);
    const char **names = ARENA_NEW(cells->arena, const char *, n), *key;
    size_t i = 0;
    json_t *value;

    json_object_foreach(cells->unknown, key, value)
    {
        names[i++] = key;
    }
    if (options->warn && n)
        options->warn(
            options->warn_ctx,
            text_say(cells->arena, "%s: unknown %ss are ignored: %s", where,
                     what, tables_listed(names, n, MAX_LISTED, cells->arena)));
}
