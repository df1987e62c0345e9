/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_CSV_H
#define NEUROSHARD_IO_CSV_H

#include "base/file_write.h"

/*
 * Reader of comma-separated values as RFC 4180 defines them. The reader cuts
 * the fields out of the text in place. A field in double quotes may contain
 * commas, line ends and doubled quotes. All records must have as many fields as
 * the first record. The reader accepts these extensions of the RFC:
 * - Lines end in LF or CRLF, and the last line may lack its line end.
 * - A UTF-8 byte order mark is skipped.
 * - Blank lines and lines that start with '#' are not records.
 * - Blanks around a field are dropped unless they are inside its quotes.
 */
struct csv {
    const char *source; /* name for messages; not owned */
    char *pos;          /* unread rest of the text, in the arena */
    size_t line;        /* line number of `pos`, from 1 */
    size_t record_line; /* line on which the latest record begins */
    /* [n_fields] fields of the latest record, inside the text;
     * NULL-terminated */
    const char **fields;
    size_t n_fields, cap;
    /* number of fields of the first record; 0 before it is read */
    size_t n_columns;
    /* number of records before the latest one; 0 for the header */
    size_t n_records;
};

/* Callback for one record of a CSV text. csv_read calls it once more at the end
 * of the text, with n_fields 0. The texts of the fields live in the arena. The
 * callback's error messages do not need the file and the line: csv_read adds
 * them. */
typedef int csv_record(void *ctx, const struct csv *csv, struct err *err);

/* Calls `record` for each record of a text, the header first, and once more at
 * the end of the text. If `record` is NULL, csv_read only checks the text.
 * ERR_INPUT messages name the line. Causes: a NUL byte, invalid UTF-8, wrong
 * quotes, a wrong number of fields, or an error from `record`. */
int csv_read(const char *text, size_t len, const char *source,
             csv_record *record, void *ctx, struct arena *arena,
             struct err *err) MUST_CHECK;

/* Checks that a whole text parses as CSV. It has the type file_check, so that
 * file writers can call it. ERR_INPUT messages name the line. */
file_check csv_check MUST_CHECK;

#endif
