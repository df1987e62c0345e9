/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_COLUMNS_H
#define NEUROSHARD_IO_TABLES_COLUMNS_H

#include "base/json.h"
#include "io/tables_reader.h"

/* Columns of table lists. In JSON the columns are members. */

/* Indices of the columns. Only the columns that the code refers to have a name
 * here, and the first columns of the reuse bins, of reach and of the misses.
 * These three are the last columns. */
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
    COLUMN_PRECISION,
    COLUMN_OPTIMIZER = 11,
    COLUMN_TIER = 20,
    COLUMN_BIN_0,
    COLUMN_REACH_0 = COLUMN_BIN_0 + REUSE_BINS,
    COLUMN_MISS_0 = COLUMN_REACH_0 + REACH_WINDOWS
};
#define N_TABLE_COLUMNS (COLUMN_MISS_0 + REACH_WINDOWS)

/* Texts of the cells that describe one table. */
struct table_cells {
    const struct tables_options *options;
    struct arena *arena;
    /* text of each column; "" gives the default, NULL: the column is missing */
    const char *texts[N_TABLE_COLUMNS];
    /* name of each column for messages; set for all columns that have a text,
     * and for rows and dim */
    const char *names[N_TABLE_COLUMNS];
    /* owned; an object whose keys are the names of ignored members */
    json_t *unknown;
};
/* Types and ranges of the columns. A key lists the names of a column, separated
 * by '|': "name|alias". */
extern const struct place_field table_columns[N_TABLE_COLUMNS];
/* Returns the index of the column with this name or alias, or N_TABLE_COLUMNS
 * if no column has it. */
size_t table_column(const char *name);
/* Fills a table from its cells. ERR_INPUT messages lack the line. */
int table_from_cells(struct table *table, const struct table_cells *cells,
                     struct err *err) MUST_CHECK;

/* Warns of unknown columns or members. `what` is the word for the message,
 * "column" or "member". */
void tables_warn(const struct table_cells *cells, const char *where,
                 const char *what);

#endif
