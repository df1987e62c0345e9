/* SPDX-License-Identifier: MIT */
#include "base/printable.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define N_ELEMS(array) (sizeof(array) / sizeof(array)[0])
#define NO_CHARACTER UINT32_MAX

/* Returns the character that begins at *pos and moves *pos to the end of the
 * character. If there is no valid character at *pos, returns NO_CHARACTER and
 * moves *pos by one byte. Overlong forms, surrogates and characters beyond
 * U+10FFFF are invalid (Unicode 15, table 3-7). */
static uint32_t next_character(const unsigned char **pos,
                               const unsigned char *end)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *p = *pos;
    const unsigned char first = *p++;
    const int n_more = (first >= 0xc0) + (first >= 0xe0) + (first >= 0xf0);
    uint32_t c = n_more ? first & (0x3fu >> n_more) : first;

    *pos = p;
    if (text_goes_on((char)first) || first >= 0xf8 || end - p < n_more)
        return NO_CHARACTER;
    for (int i = 0; i < n_more; i++) {
        if (!text_goes_on((char)p[i]))
            return NO_CHARACTER;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < least[n_more] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
        return NO_CHARACTER;
    *pos = p + n_more;
    return c;
}

bool text_is_utf8(const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + len;

    while (p < end)
        if (next_character(&p, end) == NO_CHARACTER)
            return false;
    return true;
}

/* Returns false for characters in the ranges below: control characters, line
 * and paragraph separators, marks that change the direction of writing, and
 * characters without width. */
static bool is_printable(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } unprintable[] = {
        {0, 0x1f},        {0x7f, 0x9f},       {0x61c, 0x61c},
        {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
        {0xfeff, 0xfeff}, {0xe0000, 0xe007f}, {NO_CHARACTER, NO_CHARACTER},
    };

    for (size_t i = 0; i < N_ELEMS(unprintable); i++)
        if (c >= unprintable[i].first && c <= unprintable[i].last)
            return false;
    return true;
}

bool text_is_printable(const char *s)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + strlen(s);

    while (p < end)
        if (!is_printable(next_character(&p, end)))
            return false;
    return true;
}

size_t text_quote(char *out, size_t cap, const char *s)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + strlen(s);
    size_t len = 0;

    while (p < end) {
        const unsigned char *begin = p;
        uint32_t c = next_character(&p, end);
        size_t n = (size_t)(p - begin);
        char escape[12];

        if (c == NO_CHARACTER)
            n = (size_t)snprintf(escape, sizeof escape, "\\x%02x", *begin);
        else if (!is_printable(c))
            n = (size_t)snprintf(escape, sizeof escape, "\\u%04x", c);
        if (n >= cap - len)
            break;
        memcpy(out + len, is_printable(c) ? (const char *)begin : escape, n);
        len += n;
    }
    out[len] = '\0';
    return len;
}

/* Copies fmt with `mark` in place of its quotes. An apostrophe is kept. It
 * differs from a quote because it stands inside a word and not before a
 * conversion such as %s. */
__attribute__((format_arg(1))) static const char *
mark_quotes(const char *fmt, char marked[TEXT_SENTENCE_MAX], char mark)
{
    char *close;

    snprintf(marked, TEXT_SENTENCE_MAX, "%s", fmt);
    for (char *open = marked; (open = strchr(open, '\'')); open++)
        if ((open == marked || open[-1] == ' ' || open[1] == '%') &&
            (close = strchr(open + 1, '\''))) {
            *open = *close = mark;
            open = close;
        }
    return marked;
}

/* Prints the sentence twice with two different marks as quotes. A character
 * that differs between the two prints is a quote of the format. Every other
 * quote belongs to a text that was inserted. */
void text_sentence(char *out, size_t cap, const char *fmt, va_list args)
{
    char marked[TEXT_SENTENCE_MAX], printed[2][TEXT_SENTENCE_MAX];
    char escaped[TEXT_QUOTED_MAX * TEXT_SENTENCE_MAX], *end = escaped;
    bool is_inside = false;

    for (int i = 0; i < 2; i++) {
        va_list again;

        va_copy(again, args);
        vsnprintf(printed[i], sizeof(printed[i]),
                  mark_quotes(fmt, marked, i ? '<' : '>'), again);
        va_end(again);
    }
    for (size_t i = 0; printed[0][i]; i++) {
        const char c = printed[0][i];

        if (c != printed[1][i]) {
            is_inside = !is_inside;
            *end++ = '\'';
        } else if (is_inside && c == '\'') {
            end = stpcpy(end, "\\u0027");
        } else {
            *end++ = c;
        }
    }
    *end = '\0';
    text_quote(out, cap, escaped);
}

bool text_goes_on(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}
