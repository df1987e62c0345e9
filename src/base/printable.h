/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_PRINTABLE_H
#define NEUROSHARD_BASE_PRINTABLE_H

#include "base/host_device.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Handling of text from outside. Readers accept only printable text, or quote
 * it. Text from the command line is quoted when it is shown. err_set and
 * warnings also quote each finished sentence as a whole.
 */

/* Returns whether c is a continuation byte of a UTF-8 character. */
bool text_goes_on(char c);

bool text_is_utf8(const char *s, size_t len);

/* Returns whether s may go to a terminal or into a script unchanged: UTF-8
 * without control characters (C0 with tabs and line ends, DEL, C1), line and
 * paragraph separators, marks that change the direction of writing, and
 * invisible characters. */
bool text_is_printable(const char *s);
/* Writes s with \u000a for each character that is not printable and \x9b for
 * each byte that is not UTF-8. Printable characters stay, backslashes too, so
 * quoting a quoted text changes nothing. The text is cut before the first
 * character that does not fit into cap bytes, the NUL included. Returns the
 * length. At most TEXT_QUOTED_MAX bytes are written per byte of s. */
#define TEXT_QUOTED_MAX 6
size_t text_quote(char *out, size_t cap, const char *s);
/* Writes a sentence: prints fmt and then quotes the result. If fmt puts a text
 * into quotes, as in '%s' or 'model %s', quotes in the text become \u0027, so
 * that the text cannot seem to end early. Longer sentences are cut. */
#define TEXT_SENTENCE_MAX 1024
void text_sentence(char *out, size_t cap, const char *fmt, va_list args)
    PRINTF_LIKE(3, 0);

#endif
