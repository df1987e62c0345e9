/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_CANONICAL_H
#define NEUROSHARD_CORE_CANONICAL_H

#include "base/text.h"
#include "core/table.h"

/* The contents of a table: all its properties except its name and the name of
 * its group. Searches visit tables in the order of their contents, and the seed
 * of the hash that scatters a table's rows is computed from them. So names and
 * the order of the list change no cost. */

/* Prints the contents as specified by neuroshard-tables(5): "COLUMN=VALUE",
 * separated by single blanks, without columns that have their default. */
void table_print_contents(const struct table *table, struct buf *out);

/* Sets row_seed of each table: the XXH3 of its contents, seeded with the
 * table's number among the tables with the same contents, counted from 0 in the
 * order of the list. */
void tables_draw_row_seeds(struct table *tables, size_t n);
/* Returns the row_seed of a table in a plan that stores none: the XXH3 of its
 * name. */
uint64_t row_seed_of_name(const char *name);

/* Fills order[n] with indices into tables: larger tables first, then by the
 * rest of the contents, the contents of the group, row_seed and the position.
 * Two neighbours that differ in position only are interchangeable. */
void tables_canonical_order(const struct table *tables, size_t n,
                            uint32_t *order);

#endif
