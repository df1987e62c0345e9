/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_CSV_H
#define NEUROSHARD_IO_CSV_H

#include "base/file.h"

#include <stdbool.h>

/*
 * Comma-separated values by RFC 4180, cut up in place: fields in double quotes
 * may hold commas, line ends and doubled quotes. Beyond the RFC: lines end in
 * LF or CRLF, the last one may lack its end, a UTF-8 byte order mark is
 * skipped, blank lines and lines that start with '#' are no records, and blanks
 * around a field do not belong to it unless they are inside its quotes. All
 * records have as many fields as the first.
 */
struct csv {
    const char *source;  /* name for messages; not owned */
    char *at;            /* what is not read yet, within the caller's text */
    size_t line;         /* of `at`, from 1 */
    size_t record_line;  /* where the record last read begins */
    const char **fields; /* owned; [n_fields] of that record, in the text, and
                            NULL */
    size_t n_fields, cap;
    size_t n_columns; /* of the first record; 0 before it */
};

/* text[len] must be a NUL; the text is written to and must outlive the fields.
 * ERR_INPUT names the line that holds a NUL or is no UTF-8. */
int csv_init(struct csv *csv, char *text, size_t len, const char *source,
             struct err *err) MUST_CHECK;
void csv_release(struct csv *csv); /* zeroed is fine */

/* Reads the next record into fields; *found is false at the end of the text.
 * ERR_INPUT where quotes or the number of fields are wrong. */
int csv_next(struct csv *csv, bool *found, struct err *err) MUST_CHECK;

/* Whether all of a text is records (a file_check); ERR_INPUT names the line. */
file_check csv_check MUST_CHECK;

#endif
