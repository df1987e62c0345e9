/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_CANONICAL_H
#define NEUROSHARD_CORE_CANONICAL_H

#include "base/text.h"
#include "core/table.h"

/* The contents of a table: all its properties except its name and the name of
 * its group. Searches visit tables in the order of their contents. The seed of
 * the hash that scatters a table's rows is computed from the contents, too. So
 * the names of tables and their order in the list do not change any cost. */

/* Prints the contents of a table in the format of neuroshard-tables(5):
 * "COLUMN=VALUE" for each column, separated by single blanks. Columns with
 * their default value are left out. */
void table_print_contents(const struct table *table, struct buf *out);

/* Sets row_seed of each table to the XXH3 hash of its contents. The seed of the
 * hash is 0 for the first table in the list with these contents, 1 for the
 * second table with the same contents, and so on. */
void tables_draw_row_seeds(struct table *tables, size_t n);
/* Returns the row_seed of a table with this name, for plans that do not store
 * row_seed: the XXH3 hash of the name. */
uint64_t row_seed_of_name(const char *name);

/* Fills order[n] with the indices of the tables in canonical order. Larger
 * tables come first. Tables of equal size are sorted by the rest of their
 * contents, then by the contents of their group, by row_seed, and by the index.
 * Two neighbours that differ only in their index are interchangeable. */
void tables_canonical_order(const struct table *tables, size_t n,
                            uint32_t *order);

#endif
