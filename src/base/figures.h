/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_FIGURES_H
#define NEUROSHARD_BASE_FIGURES_H

#include "base/json.h"

/*
 * Figures that are printed twice from one list of columns over an array of
 * structs: as a table for people and as JSON for programs.
 */

enum figure_style {
    FIGURE_PLAIN,
    FIGURE_SIGNED,      /* a real with its sign, + or - */
    FIGURE_SIGNIFICANT, /* a real with `decimals` significant digits */
    FIGURE_PERCENT,     /* a fraction; the table shows it times 100 */
    FIGURE_COUNT,       /* "1,234,567" */
    FIGURE_BYTES,       /* "1.50 GiB" */
    FIGURE_CUT,         /* a text that is cut to `decimals` columns */
    /* A note behind the columns. A text is printed as heading and text, a true
     * bool as the heading alone; NULL and false print nothing. */
    FIGURE_NOTE
};

/* One column of a table; a list of columns ends with {0}. A real that is not
 * finite and a text that is NULL become a dash in the table and null in
 * JSON. */
struct figure {
    const char *key;     /* key in JSON; NULL: not in JSON */
    const char *heading; /* heading in the table; NULL: not in the table */
    /* Width of the column in characters; a negative width aligns text to the
     * left. */
    int width;
    int decimals; /* number of digits after the point of a real */
    enum figure_style style;
    enum member_type type; /* type and offset of the struct member, by MEMBER_OF
                              (base/member.h) */
    size_t offset;
};

/* Append one line of a table, the headings or one row, with a blank between the
 * columns. */
void figures_heading(const struct figure *figures, struct buf *out);
void figures_row(const struct figure *figures, const void *row,
                 struct buf *out);
/* Appends the heading and n rows. row_bytes is the distance between two rows in
 * memory, in bytes. Appends nothing if n is 0. */
void figures_table(const struct figure *figures, const void *rows, size_t n,
                   size_t row_bytes, struct buf *out);
#define FIGURES_TABLE(figures, rows, n, out) \
    figures_table((figures), (rows), (n), sizeof(*(rows)), (out))
/* Return one row as a JSON object, with its members in the order of the
 * columns, or n rows as a JSON list of one object per row. row_bytes is the
 * distance between rows. The caller decrefs the result. */
json_t *figures_object(const struct figure *figures, const void *row);
json_t *figures_list(const struct figure *figures, const void *rows, size_t n,
                     size_t row_bytes);
#define FIGURES_LIST(figures, rows, n) \
    figures_list((figures), (rows), (n), sizeof(*(rows)))
/* Appends one line of a CSV file. If `keys` is true the line lists the keys of
 * the object, else its values. The field of a null value is empty. */
void figures_csv(json_t *object, bool keys, struct buf *out);

#endif
