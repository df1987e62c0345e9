/* SPDX-License-Identifier: MIT */
#include "io/python_value.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define MAX_DEPTH 32
/* Characters that end a word. A word is a value without quotes that is not
 * followed by '(', such as None. */
#define WORD_ENDS ",()[]{}=" BLANKS "'\""

static int read_value(json_t **value, const char **pos, unsigned depth,
                      struct err *err);

static char next(const char **pos)
{
    *pos += strspn(*pos, BLANKS);
    return **pos;
}

/* Reads a string in single or double quotes. A backslash makes the next
 * character an ordinary one. */
static int read_string(char **text, const char **pos, struct err *err)
{
    const char quote = *(*pos)++;
    struct buf out = {0};

    while (**pos && **pos != quote && **pos != '\n') {
        if (**pos == '\\' && (*pos)[1])
            ++*pos;
        buf_add(&out, (*pos)++, 1);
    }
    if (**pos != quote) {
        buf_release(&out);
        return err_input(err, "a string has no end");
    }
    ++*pos;
    buf_add(&out, "", 0);
    *text = out.data;
    return 0;
}

/* Reads one member, "key: value" or "key=value". `separator` is ':' or '='. */
static int read_member(json_t *object, const char **pos, char separator,
                       unsigned depth, struct err *err)
{
    json_t *value = NULL;
    char *key = NULL;
    int rc = -1;

    if (separator == ':' && !strchr("'\"", next(pos)))
        return err_input(err, "a key of a dict is not a string");
    if (separator == ':') {
        if (read_string(&key, pos, err))
            return -1;
    } else {
        const size_t n = (next(pos), strcspn(*pos, WORD_ENDS));
        struct buf name = {0};

        buf_add(&name, *pos, n);
        buf_add(&name, "", 0);
        key = name.data;
        *pos += n;
    }
    if (next(pos) != separator)
        (void)err_input(err, "'%s' has no value", key);
    else if (json_object_get(object, key))
        (void)err_input(err, "'%s' is given twice", key);
    else {
        ++*pos;
        rc = read_value(&value, pos, depth, err);
    }
    if (!rc && json_object_set_new(object, key, value))
        rc = err_input(err, "a key is not valid UTF-8");
    mem_free(key);
    return rc;
}

/* Reads members, separated by commas, up to the closing bracket `end`. If
 * `separator` is '\0', the members are elements of a list, without keys. */
static int read_members(json_t *into, const char **pos, char end,
                        char separator, unsigned depth, struct err *err)
{
    while (next(pos) != end) {
        json_t *value = NULL;

        if (!**pos)
            return err_input(err, "the text ends before '%c'", end);
        if (separator) {
            if (read_member(into, pos, separator, depth, err))
                return -1;
        } else if (read_value(&value, pos, depth, err)) {
            return -1;
        } else {
            json_array_append_new(into, value);
        }
        if (next(pos) == ',')
            ++*pos;
        else if (**pos != end)
            return **pos ? err_input(err, "no ',' or '%c' after a value", end)
                         : err_input(err, "the text ends before '%c'", end);
    }
    ++*pos;
    return 0;
}

/* Reads a number, a word (None, rank:0/cuda:0), or a call such as
 * Name(key=value). */
static int read_word(json_t **value, const char **pos, unsigned depth,
                     struct err *err)
{
    const char *word = *pos;
    const size_t len = strcspn(word, WORD_ENDS);
    char *end;
    const long long number = strtoll(word, &end, 10);

    if (!len)
        return err_input(err, "a value is missing");
    *pos += len;
    if (**pos == '(') {
        ++*pos;
        *value = json_object();
        return read_members(*value, pos, ')', '=', depth, err);
    }
    *value = end == word + len ? json_integer(number) : json_stringn(word, len);
    return *value ? 0 : err_input(err, "a word is not valid UTF-8");
}

/* Reads an object whose repr is not Python syntax, such as <Name ...>, as a
 * string. */
static int read_angle(json_t **value, const char **pos, struct err *err)
{
    const size_t len = strcspn(*pos, ">\n");

    if ((*pos)[len] != '>')
        return err_input(err, "a '<' without a '>'");
    *value = json_stringn(*pos, len + 1);
    *pos += len + 1;
    return *value ? 0 : err_input(err, "a word is not valid UTF-8");
}

static int read_value(json_t **value, const char **pos, unsigned depth,
                      struct err *err)
{
    char *text = NULL;
    int rc;

    if (depth == MAX_DEPTH)
        return err_input(err, "values are nested too deeply");
    switch (next(pos)) {
    case '{':
        ++*pos;
        *value = json_object();
        rc = read_members(*value, pos, '}', ':', depth + 1, err);
        break;
    case '[':
        ++*pos;
        *value = json_array();
        rc = read_members(*value, pos, ']', '\0', depth + 1, err);
        break;
    case '<': /* a repr such as "<Kind.LRU: 'lru'>" */
        rc = read_angle(value, pos, err);
        break;
    case '\'':
    case '"':
        rc = read_string(&text, pos, err);
        if (!rc && !(*value = json_string(text)))
            rc = err_input(err, "a string is not valid UTF-8");
        mem_free(text);
        break;
    default:
        rc = read_word(value, pos, depth + 1, err);
    }
    if (rc) {
        json_decref(*value);
        *value = NULL;
    }
    return rc;
}

int python_value(json_t **value, const char **pos, struct err *err)
{
    *value = NULL;
    return read_value(value, pos, 0, err);
}
