/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include "base/printable.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define NEAR 2 /* least number of equal first characters that a guess needs */
#define MOST_COMPARED 63
#define N_ELEMS(array) (sizeof(array) / sizeof(array)[0])

bool text_to_u64(const char *s, uint64_t *out)
{
    uint64_t n = 0;

    if (!*s || s[strspn(s, DIGITS)])
        return false;
    for (; *s; s++)
        if (__builtin_mul_overflow(n, 10u, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
            return false;
    *out = n;
    return true;
}

/* strtod also accepts blanks, signs, hexadecimal, "inf" and "nan", so the
 * characters are checked first. The decimal separator is a point because the
 * program never calls setlocale. With another separator strtod would stop at
 * the point, and the number would be refused. */
bool text_to_double(const char *s, double *out)
{
    char *end;
    double x;

    if (*s == '+' || s[strspn(s, DIGITS ".eE+-")])
        return false;
    x = strtod(s, &end);
    if (end == s || *end || !isfinite(x))
        return false;
    *out = x;
    return true;
}

int text_choice(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

/* Returns the edit distance of two names: the number of characters to insert,
 * delete or exchange, in any case. It only compares the first MOST_COMPARED
 * characters. */
static size_t n_changes(const char *a, const char *b)
{
    const size_t n = strnlen(b, MOST_COMPARED);
    size_t row[MOST_COMPARED + 1];

    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i] && i < MOST_COMPARED; i++) {
        size_t diagonal = row[0];

        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            const size_t above = row[j + 1];
            const size_t changed = diagonal + (tolower((unsigned char)a[i]) !=
                                               tolower((unsigned char)b[j]));
            const size_t added = (above < row[j] ? above : row[j]) + 1;

            row[j + 1] = changed < added ? changed : added;
            diagonal = above;
        }
    }
    return row[n];
}

const char *text_nearest(const char *const *names, const char *name)
{
    const char *nearest = NULL;
    size_t most = NEAR - 1, fewest = 0;

    for (; *names; names++) {
        const size_t changes = n_changes(*names, name);
        size_t n = 0;

        while (isalnum((unsigned char)name[n]) &&
               !strncasecmp(*names, name, n + 1))
            n++;
        if (n < most || n < NEAR)
            continue;
        if (n > most || changes < fewest ||
            (changes == fewest && strlen(*names) < strlen(nearest))) {
            most = n;
            fewest = changes;
            nearest = *names;
        }
    }
    return nearest;
}

/* Returns the number of bytes of the first n characters, or of all characters
 * if the text has fewer than n. */
static size_t bytes_of(const char *text, size_t n)
{
    size_t len = 0;

    for (; text[len] && (n || text_goes_on(text[len])); len++)
        n -= !text_goes_on(text[len]);
    return len;
}

void text_wrap(struct buf *out, const char *text, size_t pos, size_t indent,
               size_t n_columns)
{
    const size_t room = n_columns > indent ? n_columns - indent : 1;
    size_t n_blanks =
        0; /* number of blanks before the word, on the line of the word */

    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t len = strcspn(text, " "), width = 0;

        for (size_t i = 0; i < len; i++)
            width += !text_goes_on(text[i]);
        if (n_blanks && pos + n_blanks + width > n_columns) {
            buf_printf(out, "\n%*s", (int)indent, "");
            pos = indent;
            n_blanks = 0;
        }
        if (pos == indent && width > room) {
            width = room;
            len = bytes_of(text, room);
        }
        buf_printf(out, "%*s%.*s", (int)n_blanks, "", (int)len, text);
        pos += n_blanks + width;
        text += len;
        /* The rest of a broken word begins a line. */
        n_blanks = *text == ' ' ? strspn(text, " ") : n_columns;
    }
}

#define USUAL_INDENT 4

/* Returns the column in which continuation lines of a line start: below the
 * line's text, which begins after its leading blanks or its label. */
static size_t text_begin(const char *line)
{
    const size_t blanks = strspn(line, " "), word = strcspn(line, " \n");
    const size_t gap = strspn(line + word, " ");

    if (blanks)
        return blanks;
    return gap > 1 || word + gap == TEXT_LABEL_WIDTH ? word + gap
                                                     : USUAL_INDENT;
}

void text_wrap_lines(struct buf *out, const char *text, size_t n_columns)
{
    for (; text && *text; text++) {
        const size_t len = strcspn(text, "\n"), indent = text_begin(text);
        struct buf line = {0};
        size_t pos = len; /* start of the part of the text that is wrapped */

        buf_add(&line, text, len);
        if (len > indent && text_length(line.data) > n_columns)
            pos = indent + strspn(line.data + indent, " ");
        buf_add(out, text, pos);
        text_wrap(out, line.data + pos, pos, indent, n_columns);
        buf_add(out, "\n", 1);
        buf_release(&line);
        text += len;
    }
}

int text_which(const char *names, const char *name)
{
    for (int i = 0;; i++) {
        const size_t n = strcspn(names, "|");

        if (n == strlen(name) && !memcmp(names, name, n))
            return i;
        if (!names[n])
            return -1;
        names += n + 1;
    }
}

const char *text_list(const char *const *names, const char *last,
                      struct arena *arena)
{
    const char *list = names[0];

    for (size_t i = 1; names[i]; i++)
        list = arena_printf(arena, "%s%s%s", list, names[i + 1] ? ", " : last,
                            names[i]);
    return list;
}

static const char rate_units[] = "kMG";

bool text_to_rate(const char *s, double *out)
{
    const size_t len = strlen(s);
    const char *unit = len ? strchr(rate_units, s[len - 1]) : NULL;
    char number[64];

    if (len >= sizeof number)
        return false;
    memcpy(number, s, len + 1);
    if (unit)
        number[len - 1] = '\0';
    if (!text_to_double(number, out))
        return false;
    for (const char *u = rate_units; unit && u <= unit; u++)
        *out *= 1000;
    return *out > 0 && isfinite(*out);
}

void text_print_rate(double rate, struct buf *out)
{
    size_t u = 0;

    for (; rate >= 999.5 && rate_units[u]; u++)
        rate /= 1000;
    buf_printf(out, "%.*f%.*s",
               rate < 9.995   ? 2
               : rate < 99.95 ? 1
                              : 0,
               rate, u ? 1 : 0, u ? &rate_units[u - 1] : "");
}

bool text_to_bytes(const char *s, uint64_t *out)
{
    static const char letters[] = "kmgt";
    const size_t len = strspn(s, DIGITS ".");
    const char *name = s + len + (s[len] == ' ');
    const char *letter =
        *name ? strchr(letters, tolower((unsigned char)*name)) : NULL;
    const char *rest = name + (letter != NULL);
    const bool is_decimal = letter && !strcasecmp(rest, "B");
    uint64_t unit = 1, n;
    char number[64];
    double x;

    if (len >= sizeof number || (s[len] && !*name) ||
        (*rest && strcasecmp(rest, letter ? "iB" : "B") != 0 && !is_decimal))
        return false;
    for (const char *pos = letters; letter && pos <= letter; pos++)
        unit *= is_decimal ? 1000 : 1024;
    snprintf(number, sizeof number, "%.*s", (int)len, s);
    /* A whole number of units is converted exactly, a fraction of a unit to the
     * nearest byte. */
    if (text_to_u64(number, &n)) {
        if (__builtin_mul_overflow(n, unit, &n))
            return false;
    } else {
        if (unit == 1 || !text_to_double(number, &x))
            return false;
        x = round(x * (double)unit);
        n = x < 0x1p63 ? (uint64_t)x : UINT64_MAX;
    }
    if (n <= INT64_MAX)
        *out = n;
    return n <= INT64_MAX;
}

bool text_to_share(const char *s, uint64_t whole, uint64_t *out)
{
    size_t len = strlen(s);
    char number[32];
    double percent;

    if (!len || s[len - 1] != '%')
        return text_to_bytes(s, out) && *out <= whole;
    if (len > sizeof number)
        return false;
    snprintf(number, sizeof number, "%.*s", (int)len - 1, s);
    if (!text_to_double(number, &percent) || percent < 0 || percent > 100)
        return false;
    *out = (uint64_t)((double)whole * percent / 100);
    return true;
}

const char *text_from_bytes(char buf[TEXT_BYTES_MAX], double bytes)
{
    static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
                                        "TiB", "PiB", "EiB"};
    size_t i = 0;
    int n_decimals;

    while (fabs(bytes) >= 1024 && i + 1 < N_ELEMS(units)) {
        bytes /= 1024;
        i++;
    }
    n_decimals = i == 0 || fabs(bytes) >= 100 ? 0 : fabs(bytes) >= 10 ? 1 : 2;
    snprintf(buf, TEXT_BYTES_MAX, "%.*f %s", n_decimals, bytes, units[i]);
    return buf;
}

const char *text_from_count(char buf[TEXT_BYTES_MAX], uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *out = buf;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return buf;
}

void text_csv(struct buf *out, const char *text)
{
    const size_t len = strlen(text);

    if (!len || (!strpbrk(text, ",\"\r\n") && !strchr("# \t", *text) &&
                 !strchr(" \t", text[len - 1]))) {
        buf_add(out, text, len);
        return;
    }
    buf_add(out, "\"", 1);
    for (; *text; text++)
        buf_add(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    buf_add(out, "\"", 1);
}

const char *text_shown(const char *s, struct arena *arena)
{
    size_t cap = TEXT_QUOTED_MAX * strlen(s) + 1;
    char *out;

    if (text_is_printable(s))
        return s;
    out = arena_alloc(arena, cap, 1);
    text_quote(out, cap, s);
    return out;
}

const char *text_say(struct arena *arena, const char *fmt, ...)
{
    char sentence[TEXT_SENTENCE_MAX];
    va_list args;

    va_start(args, fmt);
    text_sentence(sentence, sizeof(sentence), fmt, args);
    va_end(args);
    return arena_strdup(arena, sentence);
}

size_t text_length(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += text_goes_on(*text) ? 0 : 1;
    return n;
}

void text_column(struct buf *out, const char *text, unsigned width)
{
    const size_t n_chars = text_length(text);

    if (n_chars > width && width) {
        const char *end = text + bytes_of(text, n_chars - width / 2);

        buf_add(out, text, bytes_of(text, (width - 1) / 2));
        buf_printf(out, "~%s", end);
        return;
    }
    buf_printf(out, "%s%*s", text, (int)(width - n_chars), "");
}

const char *text_shell_word(const char *word, struct arena *arena)
{
    char *copy = ARENA_NEW(arena, char, 4 * strlen(word) + 3), *out = copy;

    *out++ = '\'';
    for (; *word; word++) {
        if (*word == '\'')
            out = (char *)memcpy(out, "'\\'", 3) + 3;
        *out++ = *word;
    }
    out[0] = '\'';
    out[1] = '\0';
    return copy;
}
