/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_HEADER_H
#define NEUROSHARD_IO_TABLES_HEADER_H

#include "io/csv.h"
#include "io/tables_columns.h"

/*
 * Header of a table list in CSV. Each field of the header names a column of
 * the list. The name is one of three, the first of them that a field has:
 *
 *   1. the name that an import's option '--columns' gives the column
 *   2. a name of neuroshard-tables(5)
 *   3. for imports only, a name that other programs give the column, such as
 *      "Vocab Size" or "avg ids per sample"; a warning lists these names and
 *      their columns
 */
struct tables_header {
    struct arena *arena;
    const struct tables_options *options;
    const struct csv *csv; /* its latest record is the header */
    /* field of the header for each column; NULL: the header has no such
     * field */
    const char *names[N_TABLE_COLUMNS];
    size_t field_of[N_TABLE_COLUMNS]; /* index of that field */
    bool is_guessed[N_TABLE_COLUMNS]; /* true: found by rule 3 */
    /* name of the field that the options give for a column; NULL: none */
    const char *asked[N_TABLE_COLUMNS];
    json_t *unknown; /* borrowed; gets the fields that name no column */
};

/* Parses the option '--columns' of an import, before the header is read. A
 * wrong text is ERR_USAGE. */
int tables_header_asked(struct tables_header *header,
                        struct err *err) MUST_CHECK;
/* Reads the fields of the header and checks that no required column is
 * missing. ERR_INPUT messages lack the file and the line. */
int tables_header_read(struct tables_header *header, const struct csv *csv,
                       struct err *err) MUST_CHECK;

/* Returns the column that a field of a foreign header most likely means, or
 * N_TABLE_COLUMNS if it means none. Case, punctuation and plurals are ignored,
 * and so are a few synonyms and filler words. A name that has a unit, such as
 * "rows (M)", means none. */
size_t tables_header_guess(const char *field);

#endif
