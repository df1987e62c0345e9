/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_FIGURES_H
#define NEUROSHARD_BASE_FIGURES_H

#include "base/json.h"

/*
 * Figures that are printed twice, as a table for people and as JSON for
 * programs, from one list of columns over an array of structs.
 */

enum figure_style {
    FIGURE_PLAIN,
    FIGURE_SIGNED,      /* with its sign */
    FIGURE_SIGNIFICANT, /* `decimals` digits in all */
    FIGURE_PERCENT,     /* times 100 in the table */
    FIGURE_COUNT,       /* "1,234,567" */
    FIGURE_BYTES,       /* "1.50 GiB" */
    FIGURE_CUT,         /* a text that is cut to `decimals` columns */
    FIGURE_NOTE         /* a text, or what a bool says, behind the columns:
                           the heading and it, or nothing */
};

/* One column; a list of them ends with {0}. Of a real what is not finite, and
 * of a text NULL, is a dash, or null. */
struct figure {
    const char *key;     /* in JSON; NULL: not there */
    const char *heading; /* in the table; NULL: not there */
    int width;           /* of the column; negative: text starts at its left */
    int decimals;        /* of a real */
    enum figure_style style;
    enum member_type type; /* by MEMBER_OF, like the next */
    size_t offset;
};

/* A line each, with a blank between columns. */
void figures_heading(const struct figure *figures, struct buf *out);
void figures_row(const struct figure *figures, const void *row,
                 struct buf *out);
/* The heading and n rows, which are row_bytes apart; without rows nothing. */
void figures_table(const struct figure *figures, const void *rows, size_t n,
                   size_t row_bytes, struct buf *out);
#define FIGURES_TABLE(figures, rows, n, out) \
    figures_table((figures), (rows), (n), sizeof(*(rows)), (out))
/* An object of one row, in the order of the columns; a list of n rows, which
 * are row_bytes apart. The caller decrefs them. */
json_t *figures_object(const struct figure *figures, const void *row);
json_t *figures_list(const struct figure *figures, const void *rows, size_t n,
                     size_t row_bytes);
#define FIGURES_LIST(figures, rows, n) \
    figures_list((figures), (rows), (n), sizeof(*(rows)))
/* The values of an object as a line of a CSV file, nothing for null; or the
 * object's keys. */
void figures_csv(json_t *object, bool keys, struct buf *out);

#endif
