/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_TEXT_H
#define NEUROSHARD_BASE_TEXT_H

#include "base/mem.h"

/*
 * Conversion between numbers and text. Every parser must match the whole string
 * (other characters before or after the number are refused), ignores the locale
 * and returns false for an invalid text. The caller reports the error with its
 * file:line.
 *
 * Text from the command line is quoted when it is shown (base/printable.h).
 */

/* Parses a whole number of decimal digits. Signs, blanks and numbers that
 * overflow are refused. */
bool text_to_u64(const char *s, uint64_t *out);
/* Parses a finite decimal number. "nan", "inf", hexadecimal and numbers that
 * overflow to infinity are refused. */
bool text_to_double(const char *s, double *out);
/* Returns the index of `name` in the list `names`, which ends with NULL; -1 if
 * the list does not have the name. */
int text_choice(const char *const *names, const char *name);
/* Guesses which of `names` the user meant by `name`: the one that has the
 * longest beginning in common with `name`, in any case. The common beginning
 * must have at least two letters or digits. If several names share the longest
 * beginning, returns the one with the fewest changed characters (Levenshtein
 * 1966), then the shortest. Returns NULL if none of `names` begins like
 * `name`. */
const char *text_nearest(const char *const *names, const char *name);
/* Appends the text, broken at blanks into lines of at most n_columns columns.
 * The first line already holds `pos` columns; the other lines are indented by
 * `indent` columns. A word that is longer than a line is broken. Blanks inside
 * a line are kept. */
void text_wrap(struct buf *out, const char *text, size_t pos, size_t indent,
               size_t n_columns);
/* Wraps each line of a report as text_wrap does. Each line of the report ends
 * in a newline. Continuation lines start below the text of their line, which
 * begins after its leading blanks or its label. The width of a label in columns
 * includes the blanks that follow it. */
#define TEXT_LABEL_WIDTH 8
void text_wrap_lines(struct buf *out, const char *text, size_t n_columns);
/* Returns the index of `name` in a list like "a|b|c", from 0; -1 if the list
 * does not have the name. */
int text_which(const char *names, const char *name);
/* Returns a list as a text: "a, b or c" if `last` is " or ". `names` ends with
 * NULL. The result is in the arena, or is names[0] if that is the only name. */
const char *text_list(const char *const *names, const char *last,
                      struct arena *arena);
/* Parses a size in bytes: "80GiB", "512 MiB", "80g", "4096", "1.5TiB". Units
 * are KiB MiB GiB TiB, k m g t for the same, and KB MB GB TB (decimal), in any
 * case. B or no unit means bytes. The largest size is 2^63-1. */
bool text_to_bytes(const char *s, uint64_t *out);
/* Parses a rate above 0, a number with or without one of the units k, M and G:
 * "30M", "1.5G", "2e6". */
bool text_to_rate(const char *s, double *out);
/* Prints a rate with three digits: "30.0M". */
void text_print_rate(double rate, struct buf *out);
/* Parses a part of `whole` bytes: a size as in text_to_bytes, or a percentage,
 * "15%" or "0.5%". A part above the whole is refused. */
bool text_to_share(const char *s, uint64_t whole, uint64_t *out);

/* Writes a size as "1.50 GiB" or "512 B", with three significant digits or
 * more, and returns buf. */
#define TEXT_BYTES_MAX 32
const char *text_from_bytes(char buf[TEXT_BYTES_MAX], double bytes);
/* Writes a count with commas and returns buf. 1234567 gives "1,234,567". */
const char *text_from_count(char buf[TEXT_BYTES_MAX], uint64_t n);
/* Call text_from_bytes and text_from_count with a buffer that lives as long as
 * the enclosing block. */
#define TEXT_BYTES(bytes) \
    text_from_bytes((char[TEXT_BYTES_MAX]){0}, (double)(bytes))
#define TEXT_COUNT(n) text_from_count((char[TEXT_BYTES_MAX]){0}, (n))

/* Returns the number of UTF-8 characters of the text: the number of its bytes
 * without continuation bytes. */
size_t text_length(const char *text);
/* Appends the text in exactly `width` columns, at least 1: padded, or with its
 * middle cut out. UTF-8 characters stay whole. */
void text_column(struct buf *out, const char *text, unsigned width);
/* Appends the text as a field of comma-separated values (io/csv.h), in quotes
 * if it could not be read back without them. */
void text_csv(struct buf *out, const char *text);

/* Returns s if it is printable, else a quoted copy in the arena. */
const char *text_shown(const char *s, struct arena *arena);
/* Quotes a word so that a shell reads it back unchanged. The result is in the
 * arena. */
const char *text_shell_word(const char *word, struct arena *arena);
/* Returns a sentence in the arena. text_sentence writes it. */
NEVER_NULL const char *text_say(struct arena *arena, const char *fmt, ...)
    PRINTF_LIKE(2, 3);

#endif
