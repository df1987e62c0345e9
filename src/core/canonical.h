/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_CANONICAL_H
#define NEUROSHARD_CORE_CANONICAL_H

#include "base/text.h"
#include "core/table.h"

/*
 * The contents of a table: everything that tells it from others but its name
 * and its group's. Searches walk tables in the order of their contents, and the
 * hash of a table's rows is drawn from them. So names, and the order of a list,
 * change no cost.
 */

/* Prints the contents as neuroshard-tables(5) specifies them: "COLUMN=VALUE"
 * with single blanks between, defaults left out. */
void table_print_contents(const struct table *table, struct buf *out);

/* Draws each row_seed: the XXH3 of the contents, seeded with the table's number
 * among those of the same contents, 0 being the first in the list. */
void tables_draw_row_seeds(struct table *tables, size_t n);
/* The seed of a table in a plan that has none: the XXH3 of its name. */
uint64_t row_seed_of_name(const char *name);

/* Fills order[n] with indices into tables: larger tables first, then by the
 * rest of the contents, by those of the group, by row_seed, by position. Two
 * tables that stand next to each other by position alone are
 * interchangeable. */
void tables_canonical_order(const struct table *tables, size_t n,
                            uint32_t *order);

#endif
