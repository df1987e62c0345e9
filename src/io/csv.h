/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_CSV_H
#define NEUROSHARD_IO_CSV_H

#include "base/file.h"

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
    char *at;            /* what is not read yet of the text, in the arena */
    size_t line;         /* of `at`, from 1 */
    size_t record_line;  /* where the record last read begins */
    const char **fields; /* [n_fields] of that record, in the text, and NULL */
    size_t n_fields, cap;
    size_t n_columns; /* of the first record; 0 before it */
    size_t n_records; /* before this one; 0: it is the header */
};

/* What is done with a record, and at the end of the text with one that has no
 * fields. Their texts live in the arena. Sentences lack their place. */
typedef int csv_record(void *ctx, const struct csv *csv, struct err *err);

/* Does that, or nothing for NULL, with each record of a text, the first of
 * which is its header. ERR_INPUT names the line that holds a NUL or is no
 * UTF-8, where quotes or the number of fields are wrong, or with which nothing
 * can be done. */
int csv_read(const char *text, size_t len, const char *source,
             csv_record *record, void *ctx, struct arena *arena,
             struct err *err) MUST_CHECK;

/* Whether all of a text is records (a file_check); ERR_INPUT names the line. */
file_check csv_check MUST_CHECK;

#endif
