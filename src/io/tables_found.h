/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_FOUND_H
#define NEUROSHARD_IO_TABLES_FOUND_H

#include "io/tables_columns.h"

/*
 * Tables that a reader finds one after the other in the text of another
 * program.
 */
struct tables_found {
    const char *source;
    struct table_cells cells; /* texts of the table that is added next */
    struct table *tables;     /* owned; tables found so far; grows */
    size_t n_tables, cap;
    json_t *seen; /* owned; index and line of each name */
};

void found_init(struct tables_found *found, const char *source,
                const struct tables_options *options, struct arena *arena);

/* Returns a copy of a text of len bytes, in the arena. A NUL byte in it is an
 * error, for which NULL is returned. */
const char *found_text(const struct tables_found *found, const char *text,
                       size_t len, struct err *err);
/* Begins a table: all of its cells are missing. */
void found_begin(struct tables_found *found);
/* Sets a cell of the table. A NULL text leaves it missing. `name` is the
 * column's name in messages; it must live as long as the arena. */
void found_set(struct tables_found *found, size_t column, const char *name,
               const char *text);
/* Meaning of a second table of the same name. */
enum found_again {
    FOUND_SAME,  /* it is the same table; all of its cells must agree */
    FOUND_SHARED /* another feature of the table: lookups and outputs add up */
};
/* Ends a table and adds it. Messages of ERR_INPUT begin with the source and the
 * line. */
int found_end(struct tables_found *found, size_t line, enum found_again again,
              struct err *err) MUST_CHECK;

/* Moves the tables to the list, and releases *found. Fails if rc is not 0.
 * Fails with the message `none`, after the source, if there are no tables. */
int found_finish(struct tables_found *found, struct table_list *list, int rc,
                 const char *none, struct err *err) MUST_CHECK;

/* Returns the line of a position in a text, from 1. */
size_t found_line(const char *text, const char *pos);

#endif
