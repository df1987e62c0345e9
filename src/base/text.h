/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_TEXT_H
#define NEUROSHARD_BASE_TEXT_H

#include "base/mem.h"

#include <stdarg.h>

/*
 * Numbers out of text and back. Every parser takes the whole string (leading
 * or trailing anything is refused), never reads the locale and returns false
 * for what does not fit; the caller says what was wrong, with its file:line.
 *
 * And words that others have written: readers take only what is printable, or
 * quote it; what comes from the command line is quoted where it is shown; and
 * err_set and warnings quote each finished sentence, whatever is in it.
 */

/* Decimal digits only: no sign, no blank, no overflow. */
bool text_to_u64(const char *s, uint64_t *out);
/* A finite decimal number; "nan", "inf", hexadecimal and what overflows to
 * infinity are refused. */
bool text_to_double(const char *s, double *out);
/* Which of the names, the last of them NULL, this is; -1 for none. */
int text_choice(const char *const *names, const char *name);
/* The name that was meant, perhaps: that begins with the same letters and
 * digits, in any case, the most of them and two at least; of several that which
 * the fewest changes of a character lead to (Levenshtein 1966), then the
 * shortest. NULL where none does. */
const char *text_nearest(const char *const *names, const char *name);
/* The text, broken at blanks into lines of so many columns; `at` of the first
 * are taken, the others are indented. A word that no line holds is broken,
 * other blanks stay. */
void text_wrap(struct buf *out, const char *text, size_t at, size_t indent,
               size_t n_columns);
/* The same of each line of a report, which ends in a newline: what a line goes
 * on with stands below its text, behind its blanks or a label. */
#define TEXT_LABEL_WIDTH 8 /* the blanks behind it included */
void text_wrap_lines(struct buf *out, const char *text, size_t n_columns);
/* Which of "a|b|c" it is, from 0; -1: none. */
int text_which(const char *names, const char *name);
/* "a, b or c" for " or " before the last one; of a list as above, in the arena
 * or one of the names. */
const char *text_list(const char *const *names, const char *last,
                      struct arena *arena);
/* "80GiB", "512 MiB", "80g", "4096", "1.5TiB": KiB MiB GiB TiB, or k m g t for
 * them, and KB MB GB TB (decimal), in any case; B or nothing for bytes; at most
 * 2^63-1. */
bool text_to_bytes(const char *s, uint64_t *out);
/* Part of `whole` bytes: a size as above, or a percentage, "15%" or "0.5%".
 * What is more than the whole is refused. */
bool text_to_share(const char *s, uint64_t whole, uint64_t *out);

/* "1.50 GiB", "512 B"; three significant digits or more. buf is returned. */
#define TEXT_BYTES_MAX 32
const char *text_from_bytes(char buf[TEXT_BYTES_MAX], double bytes);
/* 1234567 -> "1,234,567" */
const char *text_from_count(char buf[TEXT_BYTES_MAX], uint64_t n);
/* The same as texts that last as long as the block they stand in. */
#define TEXT_BYTES(bytes) \
    text_from_bytes((char[TEXT_BYTES_MAX]){0}, (double)(bytes))
#define TEXT_COUNT(n) text_from_count((char[TEXT_BYTES_MAX]){0}, (n))

/* Whether a byte of UTF-8 goes on with a character. */
bool text_goes_on(char c);
/* Its characters: bytes that do not go on with one. */
size_t text_length(const char *text);
/* The text in `width` columns, at least 1: padded, or cut in its middle; UTF-8
 * stays whole. */
void text_column(struct buf *out, const char *text, unsigned width);
/* The text as a field of comma-separated values (io/csv.h), in quotes where it
 * needs them to be read back. */
void text_csv(struct buf *out, const char *text);

bool text_is_utf8(const char *s, size_t len);

/* Whether s may go to a terminal or into a script as it is: UTF-8 without
 * control characters (C0 with tabs and line ends, DEL, C1), line and paragraph
 * separators, marks that turn the direction of writing, and invisible ones. */
bool text_is_printable(const char *s);
/* Writes s with \u000a for each character that is not printable, \x9b for each
 * byte that is not UTF-8; what is printable stays, backslashes too, so that a
 * quoted text is quoted into itself. Cut before the first that does not fit
 * into cap bytes, the NUL included. Returns the length. */
#define TEXT_QUOTED_MAX 6 /* bytes out for one in, at most */
size_t text_quote(char *out, size_t cap, const char *s);
/* s where it is printable, else a quoted copy in the arena. */
const char *text_shown(const char *s, struct arena *arena);
/* A sentence: fmt, printed and quoted. Where fmt puts a text into quotes, as in
 * '%s' or 'model %s', the quotes in it become \u0027: it ends where it seems
 * to. Longer ones are cut. */
#define TEXT_SENTENCE_MAX 1024
void text_sentence(char *out, size_t cap, const char *fmt, va_list args)
    PRINTF_LIKE(3, 0);
/* The same in the arena. */
NEVER_NULL const char *text_say(struct arena *arena, const char *fmt, ...)
    PRINTF_LIKE(2, 3);

#endif
