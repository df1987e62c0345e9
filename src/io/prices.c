/* SPDX-License-Identifier: MIT */
#include "io/prices.h"

#include "base/text.h"

#include <string.h>

#define BLANKS " \t\r"

/* Removes blanks from both ends of a text. */
static char *trimmed(char *text)
{
    size_t len;

    text += strspn(text, BLANKS);
    len = strlen(text);
    while (len && strchr(BLANKS, text[len - 1]))
        len--;
    text[len] = '\0';
    return text;
}

/* Adds the price of one line, which has no comment. */
static int read_line(struct prices *prices, char *line, size_t number,
                     struct arena *arena, struct err *err)
{
    struct gpu_price price = {.line = number};
    char *cut;

    line = trimmed(line);
    if (!*line || (!prices->n && !strcmp(line, "gpu,price")))
        return 0;
    cut = strrchr(line, ',');
    for (char *c = line; !strchr(line, ',') && *c; c++)
        if (strchr(BLANKS, *c))
            cut = c;
    if (!cut)
        return err_input(err,
                         "%s:%zu: '%.80s' is not the name of a GPU and its "
                         "price per hour, such as 'h100 2.49'",
                         prices->source, number, text_shown(line, arena));
    *cut = '\0';
    price.gpu = trimmed(line);
    if (!*price.gpu)
        return err_input(err, "%s:%zu: the name of the GPU is missing",
                         prices->source, number);
    if (!text_to_double(trimmed(cut + 1), &price.per_hour) ||
        price.per_hour <= 0 || price.per_hour > PRICES_MOST)
        return err_input(err,
                         "%s:%zu: the price of '%.80s' is '%.80s', not a "
                         "number above 0, up to 1e9",
                         prices->source, number, text_shown(price.gpu, arena),
                         text_shown(trimmed(cut + 1), arena));
    prices->list[prices->n++] = price;
    return 0;
}

int prices_read(struct prices *prices, const char *text, size_t len,
                const char *source, struct arena *arena, struct err *err)
{
    char *copy = arena_strndup(arena, text, len), *line = copy;
    size_t n_lines = 1;

    for (size_t i = 0; i < len; i++)
        n_lines += text[i] == '\n';
    *prices = (struct prices){
        .source = source, .list = ARENA_NEW(arena, struct gpu_price, n_lines)};
    if (memchr(text, '\0', len))
        return err_input(err, "%s:1: the text contains a NUL", source);
    for (size_t number = 1; number <= n_lines; number++) {
        char *end = line + strcspn(line, "\n"), *next = end + (*end != '\0');

        *end = '\0';
        line[strcspn(line, "#")] = '\0';
        if (read_line(prices, line, number, arena, err))
            return -1;
        line = next;
    }
    return prices->n ? 0
                     : err_input(err, "%s:1: the file has no prices", source);
}
