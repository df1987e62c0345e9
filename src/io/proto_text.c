/* SPDX-License-Identifier: MIT */
#include "io/proto_text.h"

#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define MAX_DEPTH 32

struct proto_reader {
    const char *pos;
    size_t line;
};

static int read_fields(json_t *message, struct proto_reader *reader, char end,
                       unsigned depth, struct err *err);

/* Moves to the next character that is neither blank nor in a comment. */
static char next(struct proto_reader *reader)
{
    for (;; reader->pos++) {
        if (*reader->pos == '#')
            reader->pos += strcspn(reader->pos, "\n");
        reader->line += *reader->pos == '\n';
        if (!*reader->pos || !strchr(" \t\r\n", *reader->pos))
            return *reader->pos;
    }
}

static size_t word_length(const char *pos)
{
    size_t len = 0;

    while (isalnum((unsigned char)pos[len]) ||
           (pos[len] && strchr("_.+-/[]", pos[len])))
        len++;
    return len;
}

/* Reads strings in quotes; adjacent ones are one text. */
static int read_strings(json_t **value, struct proto_reader *reader,
                        struct err *err)
{
    struct buf out = {0};
    int rc = 0;

    while (!rc && next(reader) && strchr("'\"", *reader->pos)) {
        const char quote = *reader->pos++;

        for (; *reader->pos && *reader->pos != quote && *reader->pos != '\n';
             reader->pos++) {
            reader->pos += *reader->pos == '\\' && reader->pos[1];
            buf_add(&out, reader->pos, 1);
        }
        if (*reader->pos != quote)
            rc = err_input(err, "a string has no end");
        else
            reader->pos++;
    }
    buf_add(&out, "", 0);
    if (!rc && !(*value = json_string(out.data)))
        rc = err_input(err, "a string is not valid UTF-8");
    buf_release(&out);
    return rc;
}

/* Reads a value that is no list. */
static int read_single(json_t **value, struct proto_reader *reader,
                       unsigned depth, struct err *err)
{
    const char first = next(reader);
    const size_t len = strcspn(reader->pos, " \t\r\n,;{}[]<>#");
    uint64_t number;
    char *word;

    if (first == '{' || first == '<') {
        *value = json_pack("{s:I}", PROTO_LINE, (json_int_t)reader->line);
        reader->pos++;
        return read_fields(*value, reader, first == '{' ? '}' : '>', depth + 1,
                           err);
    }
    if (first == '\'' || first == '"')
        return read_strings(value, reader, err);
    if (!len)
        return err_input(err, "a value is missing");
    word = mem_alloc(len + 1, 1);
    memcpy(word, reader->pos, len);
    word[len] = '\0';
    reader->pos += len;
    *value = text_to_u64(word, &number) && number <= INT64_MAX
                 ? json_integer((json_int_t)number)
                 : json_string(word);
    mem_free(word);
    return *value ? 0 : err_input(err, "a word is not valid UTF-8");
}

/* Reads the values of a field: one, or a list in brackets. */
static int read_values(json_t *values, struct proto_reader *reader,
                       unsigned depth, struct err *err)
{
    const bool is_list = next(reader) == '[';

    reader->pos += is_list;
    while (!is_list || next(reader) != ']') {
        json_t *value = NULL;

        if (read_single(&value, reader, depth, err)) {
            json_decref(value);
            return -1;
        }
        json_array_append_new(values, value);
        if (!is_list)
            return 0;
        if (next(reader) == ',')
            reader->pos++;
        else if (*reader->pos != ']')
            return err_input(err, "no ',' or ']' after a value");
    }
    reader->pos++;
    return 0;
}

/* Reads the fields of a message up to its closing bracket, or up to the end of
 * the text if `end` is '\0'. */
static int read_fields(json_t *message, struct proto_reader *reader, char end,
                       unsigned depth, struct err *err)
{
    if (depth > MAX_DEPTH)
        return err_input(err, "messages are nested too deeply");
    while (next(reader) != end) {
        const size_t len = word_length(reader->pos);
        json_t *values;
        char *name;
        bool is_new;

        if (!len)
            return *reader->pos
                       ? err_input(err, "'%c' is not the name of a field",
                                   isprint((unsigned char)*reader->pos)
                                       ? *reader->pos
                                       : '?')
                       : err_input(err, "the text ends before '%c'", end);
        name = mem_alloc(len + 1, 1);
        memcpy(name, reader->pos, len);
        name[len] = '\0';
        reader->pos += len;
        values = json_object_get(message, name);
        is_new = !values;
        if (is_new)
            json_object_set_new(message, name, values = json_array());
        mem_free(name);
        if (next(reader) == ':')
            reader->pos++;
        else if (!strchr("{<", *reader->pos) || !*reader->pos)
            return err_input(err, "a field has neither ':' nor '{'");
        if (read_values(values, reader, depth, err))
            return -1;
        if (next(reader) == ',' || *reader->pos == ';')
            reader->pos++;
    }
    reader->pos += end != '\0';
    return 0;
}

int proto_text(json_t **root, const char *text, const char *source,
               struct err *err)
{
    struct proto_reader reader = {.pos = text, .line = 1};

    *root = json_pack("{s:I}", PROTO_LINE, (json_int_t)1);
    if (!read_fields(*root, &reader, '\0', 0, err))
        return 0;
    json_decref(*root);
    *root = NULL;
    return err_prefix(err, "%s:%zu", source, reader.line);
}
