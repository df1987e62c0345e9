/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_PRIVATE_H
#define NEUROSHARD_IO_TABLES_PRIVATE_H

#include "base/json.h"
#include "io/tables_io.h"

/* Declarations that the readers of table lists share. */

/* Columns of a list; JSON has them as members. Named here are the columns that
 * the code refers to, and the first of the bins, which are last. */
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

/* The texts that describe one table. */
struct table_cells {
    const struct tables_options *options;
    struct arena *arena;
    /* "": the default; NULL: the column is missing */
    const char *texts[N_TABLE_COLUMNS];
    /* names for messages; set for all texts, rows and dim */
    const char *names[N_TABLE_COLUMNS];
    json_t *unknown; /* owned; an object with the ignored members as keys */
};
/* Types and ranges of the columns. A key lists the names with '|' between:
 * "name|alias". */
extern const struct place_field table_columns[N_TABLE_COLUMNS];
/* Returns the column with a name or alias, or N_TABLE_COLUMNS. */
size_t table_column(const char *name);
/* Fills a table from its cells. ERR_INPUT messages lack the line. */
int table_from_cells(struct table *table, const struct table_cells *cells,
                     struct err *err) MUST_CHECK;

/* Shortens a text of a file for a message: a long one becomes its beginning and
 * "...", in the arena. */
const char *tables_shown(const char *text, struct arena *arena);

/* Lists at most `most` of the names, and counts the rest: "'a', 'b' and 3
 * more". */
const char *tables_listed(const char *const *names, size_t n, size_t most,
                          struct arena *arena);

/* Warns of unknown columns or members, and of a list without any pooling
 * factors. `what` is "column" or "member". */
void tables_warn(const struct table_cells *cells, const char *where,
                 const char *what);

/* Makes the n_tables tables of a list with table_init. The options give their
 * names, or else `prefix` and a number do. */
int tables_name(struct table_list *list, const char *prefix,
                const struct tables_options *options, struct arena *arena,
                struct err *err) MUST_CHECK;

/* True if a text is a command line of dlrm, or a report of FBGEMM's. */
bool tables_is_dlrm(const char *text);
bool tables_is_tbe(const char *text);

#endif
