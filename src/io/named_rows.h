/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_NAMED_ROWS_H
#define NEUROSHARD_IO_NAMED_ROWS_H

#include "base/mem.h"

/*
 * Reader of rows with named columns, as CSV with a heading, or as a JSON list
 * of objects with members of the same names. Columns may be in any order, and
 * other columns are ignored.
 */
struct named_rows {
    const char *const *names; /* NULL-terminated */
    /* number of columns that the heading of a CSV must have, the first ones */
    unsigned n_required;
    /* Reads one row: the text of each column in the order of `names`, "" if the
     * row has none. The texts live until the call returns. ERR_INPUT messages
     * need no file and line. */
    int (*read)(void *ctx, const char *const *cells, struct err *err);
    void *ctx;
    /* Set by named_rows_read: */
    size_t n;    /* number of rows */
    size_t line; /* line of the last row, from 1 */
    bool is_cut; /* true: the last line of a CSV has no line end */
};

/* Largest number of columns. */
#define NAMED_ROWS_COLUMNS 8

/* Reads all rows of a text, which need not end in a NUL. ERR_INPUT messages
 * name the line. */
int named_rows_read(struct named_rows *rows, const char *text, size_t len,
                    const char *source, struct arena *arena,
                    struct err *err) MUST_CHECK;

#endif
