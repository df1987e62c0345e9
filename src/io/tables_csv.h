/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_CSV_H
#define NEUROSHARD_IO_TABLES_CSV_H

#include "io/tables_reader.h"

/* Table lists as CSV (neuroshard-tables(5)). */

tables_reader tables_from_csv MUST_CHECK;

/* Appends the list as CSV. The first four columns are always written, other
 * columns only if some table needs them. Unknown values give empty cells.
 * Reading the text back gives an equal list. */
void tables_to_csv(struct buf *out, const struct table_list *list);

#endif
