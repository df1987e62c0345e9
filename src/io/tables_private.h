/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_PRIVATE_H
#define NEUROSHARD_IO_TABLES_PRIVATE_H

#include "base/json.h"
#include "io/tables_io.h"

/* What the readers of table lists share. */

/* Columns of a list, which JSON has as members: those that are asked for by
 * themselves, and the first of the bins, which are the last. */
enum {
    COLUMN_NAME,
    COLUMN_ROWS,
    COLUMN_DIM,
    COLUMN_POOLING,
    COLUMN_ZIPF,
    COLUMN_SHARDING,
    COLUMN_DEVICE,
    COLUMN_OUTPUTS,
    COLUMN_OUTPUT,
    COLUMN_BIN_0 = 18
};
#define N_TABLE_COLUMNS (COLUMN_BIN_0 + REUSE_BINS)

/* What is said of a table. */
struct table_cells {
    const struct tables_options *options;
    struct arena *arena;
    const char *texts[N_TABLE_COLUMNS]; /* "": the default; NULL: not there */
    const char *names[N_TABLE_COLUMNS]; /* of the texts, and of rows and dim */
    json_t *unknown; /* owned; an object whose members are left out */
};
/* What they may be; a key is names with '|' between, "name|alias". */
extern const struct place_field table_columns[N_TABLE_COLUMNS];
/* The column of that name or alias, or N_TABLE_COLUMNS. */
size_t table_column(const char *name);
/* ERR_INPUT is a sentence without its place. */
int table_from_cells(struct table *table, const struct table_cells *cells,
                     struct err *err) MUST_CHECK;

/* Text of a file as it may stand in a message: of what is long the beginning
 * and "...", in the arena. */
const char *tables_shown(const char *text, struct arena *arena);

/* "'a', 'b' and 3 more": so many of the names, and how many others. */
const char *tables_listed(const char *const *names, size_t n, size_t most,
                          struct arena *arena);

/* Warns of the unknown ones, `what` ("column", "member") by `what`, and where
 * no table says how many look-ups it has. */
void tables_warn(const struct table_cells *cells, const char *where,
                 const char *what);

/* Makes a list's tables, n_tables of them as table_init does, named by the
 * options, or by `prefix` and their number. */
int tables_name(struct table_list *list, const char *prefix,
                const struct tables_options *options, struct arena *arena,
                struct err *err) MUST_CHECK;

/* Whether a text is a command line of dlrm, or a report of FBGEMM's. */
bool tables_is_dlrm(const char *text);
bool tables_is_tbe(const char *text);

#endif
