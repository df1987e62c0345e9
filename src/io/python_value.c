/* SPDX-License-Identifier: MIT */
#include "io/python_value.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define MAX_DEPTH 32
/* Characters that end a word. A word is a value without quotes that is not
 * followed by '(', such as None. */
#define WORD_ENDS ",()[]{}=" BLANKS "'\""
/* In code, operators end a word, too. */
#define CODE_ENDS WORD_ENDS "+-*/%:;#<>!&|~^@\\"
/* Key of an unknown value. */
#define UNKNOWN "expression"

struct python_reader {
    const char *pos;
    /* values of names if the text is code; NULL: the text was printed */
    const json_t *names;
};

static int read_value(json_t **value, struct python_reader *reader,
                      unsigned depth, struct err *err);

/* Moves to the next character that is neither blank nor in a comment. */
static char next(struct python_reader *reader)
{
    /* in code a backslash joins lines */
    const char *blanks = reader->names ? BLANKS "\\" : BLANKS;

    reader->pos += strspn(reader->pos, blanks);
    while (reader->names && *reader->pos == '#') {
        reader->pos += strcspn(reader->pos, "\n");
        reader->pos += strspn(reader->pos, blanks);
    }
    return *reader->pos;
}

/* Reads a string in single or double quotes. A backslash makes the next
 * character an ordinary one. */
static int read_string(char **text, struct python_reader *reader,
                       struct err *err)
{
    const char quote = *reader->pos++;
    struct buf out = {0};

    while (*reader->pos && *reader->pos != quote && *reader->pos != '\n') {
        if (*reader->pos == '\\' && reader->pos[1])
            ++reader->pos;
        buf_add(&out, reader->pos++, 1);
    }
    if (*reader->pos != quote) {
        buf_release(&out);
        return err_input(err, "a string has no end");
    }
    ++reader->pos;
    buf_add(&out, "", 0);
    *text = out.data;
    return 0;
}

/* True if the next argument of a call has a name: "name=", but not "==". */
static bool is_named(struct python_reader *reader)
{
    const char *pos;

    next(reader);
    pos = reader->pos + strcspn(reader->pos, WORD_ENDS);
    if (pos == reader->pos)
        return false;
    pos += strspn(pos, BLANKS);
    return *pos == '=' && pos[1] != '=';
}

/* Reads the key of a member, and the separator behind it. In a call, `idx` is
 * the key of an argument without a name. */
static int read_key(char **key, struct python_reader *reader, char separator,
                    size_t idx, struct err *err)
{
    struct buf name = {0};
    size_t len;

    next(reader);
    if (separator == ':') {
        if (!strchr("'\"", *reader->pos) || !*reader->pos)
            return err_input(err, "a key of a dict is not a string");
        if (read_string(key, reader, err))
            return -1;
    } else if (is_named(reader)) {
        len = strcspn(reader->pos, WORD_ENDS);
        buf_add(&name, reader->pos, len);
        buf_add(&name, "", 0);
        *key = name.data;
        reader->pos += len;
    } else {
        buf_printf(&name, "%zu", idx);
        *key = name.data;
        return 0;
    }
    if (next(reader) != separator)
        return err_input(err, "'%s' has no value", *key);
    ++reader->pos;
    return 0;
}

/* Reads one member, "key: value", "key=value" or, in a call, "value". */
static int read_member(json_t *object, struct python_reader *reader,
                       char separator, unsigned depth, struct err *err)
{
    json_t *value = NULL;
    char *key = NULL;
    int rc = read_key(&key, reader, separator, json_object_size(object), err);

    if (!rc && json_object_get(object, key))
        rc = err_input(err, "'%s' is given twice", key);
    if (!rc && read_value(&value, reader, depth, err))
        rc = -1;
    if (!rc && json_object_set_new(object, key, value))
        rc = err_input(err, "a key is not valid UTF-8");
    mem_free(key);
    return rc;
}

/* Reads members, separated by commas, up to the closing bracket `end`. If
 * `separator` is '\0', the members are elements of a list, without keys.
 * Returns -1 on failure, 1 if a comma stands before the bracket, else 0. */
static int read_members(json_t *into, struct python_reader *reader, char end,
                        char separator, unsigned depth, struct err *err)
{
    int has_comma = 0;

    while (next(reader) != end) {
        json_t *value = NULL;

        if (!*reader->pos)
            return err_input(err, "the text ends before '%c'", end);
        if (separator) {
            if (read_member(into, reader, separator, depth, err))
                return -1;
        } else if (read_value(&value, reader, depth, err)) {
            return -1;
        } else {
            json_array_append_new(into, value);
        }
        has_comma = next(reader) == ',';
        if (has_comma)
            ++reader->pos;
        else if (*reader->pos != end)
            return *reader->pos
                       ? err_input(err, "no ',' or '%c' after a value", end)
                       : err_input(err, "the text ends before '%c'", end);
    }
    ++reader->pos;
    return has_comma;
}

/* Returns an integer such as "12" or "1_000", or NULL if the word is not an
 * integer. */
static json_t *read_integer(const char *word, size_t len)
{
    char digits[24], *end;
    size_t n = 0;
    long long number;

    for (size_t i = 0; i < len && n + 1 < sizeof(digits); i++)
        if (word[i] != '_' || !i)
            digits[n++] = word[i];
    digits[n] = '\0';
    errno = 0;
    number = strtoll(digits, &end, 10);
    return *end || !n || errno || n + 1 == sizeof(digits) ||
                   isspace((unsigned char)*digits)
               ? NULL
               : json_integer(number);
}

/* Reads a number, a word (None, rank:0/cuda:0), or a call such as
 * Name(key=value). In code, a word is a name; its value may be unknown. */
static int read_word(json_t **value, struct python_reader *reader,
                     unsigned depth, struct err *err)
{
    const char *word = reader->pos;
    const size_t len = strcspn(word, reader->names ? CODE_ENDS : WORD_ENDS);
    json_t *text;

    if (!len)
        return err_input(err, "a value is missing");
    reader->pos += len;
    if (*reader->pos == '(') {
        if (reader->names)
            return err_input(err, "a call has no known value");
        ++reader->pos;
        *value = json_object();
        return read_members(*value, reader, ')', '=', depth, err) < 0 ? -1 : 0;
    }
    *value = read_integer(word, len);
    if (*value)
        return 0;
    text = json_stringn(word, len);
    if (!text)
        return err_input(err, "a word is not valid UTF-8");
    *value = json_object_get(reader->names, json_string_value(text));
    if (*value) {
        json_incref(*value);
        json_decref(text);
    } else {
        *value = reader->names ? json_pack("{s:o}", UNKNOWN, text) : text;
    }
    return 0;
}

/* Reads an object whose repr is not Python syntax, such as <Name ...>, as a
 * string. */
static int read_angle(json_t **value, struct python_reader *reader,
                      struct err *err)
{
    const size_t len = strcspn(reader->pos, ">\n");

    if (reader->pos[len] != '>')
        return err_input(err, "a '<' without a '>'");
    *value = json_stringn(reader->pos, len + 1);
    reader->pos += len + 1;
    return *value ? 0 : err_input(err, "a word is not valid UTF-8");
}

/* Reads a tuple as a list. A value in brackets is the value itself. */
static int read_tuple(json_t **value, struct python_reader *reader,
                      unsigned depth, struct err *err)
{
    json_t *list = json_array();
    const int rc = read_members(list, reader, ')', '\0', depth, err);

    *value = list;
    if (rc < 0)
        return -1;
    if (!rc && json_array_size(list) == 1) {
        *value = json_incref(json_array_get(list, 0));
        json_decref(list);
    }
    return 0;
}

/* Reads a value without operators. */
static int read_operand(json_t **value, struct python_reader *reader,
                        unsigned depth, struct err *err)
{
    char *text = NULL;
    int rc;

    if (depth >= MAX_DEPTH)
        return err_input(err, "values are nested too deeply");
    switch (next(reader)) {
    case '{':
        ++reader->pos;
        *value = json_object();
        rc = read_members(*value, reader, '}', ':', depth + 1, err);
        break;
    case '[':
        ++reader->pos;
        *value = json_array();
        rc = read_members(*value, reader, ']', '\0', depth + 1, err);
        break;
    case '(':
        ++reader->pos;
        rc = read_tuple(value, reader, depth + 1, err);
        break;
    case '<': /* a repr such as "<Kind.LRU: 'lru'>" */
        rc = read_angle(value, reader, err);
        break;
    case '\'':
    case '"':
        rc = read_string(&text, reader, err);
        if (!rc && !(*value = json_string(text)))
            rc = err_input(err, "a string is not valid UTF-8");
        mem_free(text);
        break;
    default:
        rc = read_word(value, reader, depth + 1, err);
    }
    if (rc < 0) {
        json_decref(*value);
        *value = NULL;
        return -1;
    }
    return 0;
}

/* --- code --- */

/* Computes left OPERATOR right. '^' is the power. Returns false if the result
 * is not a 64-bit integer. */
static bool compute(int64_t *out, int64_t left, char operator, int64_t right)
{
    switch (operator) {
    case '+':
        return !__builtin_add_overflow(left, right, out);
    case '-':
        return !__builtin_sub_overflow(left, right, out);
    case '*':
        return !__builtin_mul_overflow(left, right, out);
    case '/': /* rounds down, as "//" does; here only for positive numbers */
        *out = right > 0 && left >= 0 ? left / right : 0;
        return right > 0 && left >= 0;
    default:
        *out = 1;
        for (int64_t i = 0; i < right; i++)
            if (__builtin_mul_overflow(*out, left, out) || i == 64)
                return false;
        return right >= 0;
    }
}

/* Reads an operator of at least the given precedence: 1 for + and -, 2 for *
 * and //, 3 for **. Returns '^' for **, or '\0' if another text follows. */
static char read_operator(struct python_reader *reader, int precedence)
{
    const char first = next(reader);
    const bool is_double = first && reader->pos[1] == first;
    const int own = !first || !strchr("+-*/", first) ? 0
                    : strchr("+-", first)            ? 1
                    : first == '*' && is_double      ? 3
                                                     : 2;

    if (!own || own < precedence || (first == '/' && !is_double))
        return '\0';
    reader->pos += 1 + (strchr("*/", first) && is_double);
    return own == 3 ? '^' : first;
}

/* Reads an expression of integers by precedence climbing. Any other operand
 * with an operator is an error. */
static int read_sum(json_t **value, struct python_reader *reader,
                    int precedence, unsigned depth, struct err *err)
{
    char operator;

    if (read_operand(value, reader, depth, err))
        return -1;
    while ((operator= read_operator(reader, precedence))) {
        const int next_precedence = operator== '^'           ? 3
                                    : strchr("*/", operator) ? 3
                                                             : 2;
        json_t *right = NULL;
        int64_t result = 0;
        const bool is_known =
            depth < MAX_DEPTH &&
            !read_sum(&right, reader, next_precedence, depth + 1, err) &&
            json_is_integer(*value) && json_is_integer(right) &&
            compute(&result, json_integer_value(*value), operator,
                    json_integer_value(right));

        json_decref(right);
        json_decref(*value);
        *value = is_known ? json_integer(result) : NULL;
        if (!is_known)
            return err_input(err, "an expression is not one of integers");
    }
    return 0;
}

/* Moves behind a string that begins at the position. */
static const char *after_string(const char *pos)
{
    const char quote = *pos++;

    for (; *pos && *pos != quote && *pos != '\n'; pos++)
        if (*pos == '\\' && pos[1])
            pos++;
    return *pos == quote ? pos + 1 : pos;
}

/* Moves to the comma or closing bracket that ends an expression. Returns false
 * if the text ends before it. */
static bool skip_expression(struct python_reader *reader)
{
    size_t depth = 0;

    while (next(reader)) {
        const char c = *reader->pos;

        if (!depth && strchr(",)]}", c))
            return true;
        if (c == '\'' || c == '"') {
            reader->pos = after_string(reader->pos);
            continue;
        }
        depth += strchr("([{", c) != NULL;
        depth -= strchr(")]}", c) != NULL;
        reader->pos++;
    }
    return false;
}

/* Reads an expression of a program. If its value is not known, the value is an
 * object with its text. */
static int read_expression(json_t **value, struct python_reader *reader,
                           unsigned depth, struct err *err)
{
    struct err unused = {0};
    const char *start;
    json_t *text;

    next(reader);
    start = reader->pos;
    if (!read_sum(value, reader, 1, depth, &unused)) {
        if (strchr(",)]}\n", next(reader)))
            return 0;
        json_decref(*value);
    }
    *value = NULL;
    reader->pos = start;
    if (!skip_expression(reader))
        return err_input(err, "the text ends before an expression does");
    text = json_stringn(start, (size_t)(reader->pos - start));
    if (!text)
        return err_input(err, "an expression is not valid UTF-8");
    *value = json_pack("{s:o}", UNKNOWN, text);
    return 0;
}

static int read_value(json_t **value, struct python_reader *reader,
                      unsigned depth, struct err *err)
{
    return (reader->names ? read_expression : read_operand)(value, reader,
                                                            depth, err);
}

int python_value(json_t **value, const char **pos, const json_t *names,
                 struct err *err)
{
    struct python_reader reader = {.pos = *pos, .names = names};
    int rc;

    *value = NULL;
    rc = read_value(value, &reader, 0, err);
    *pos = reader.pos;
    return rc;
}

int python_call(json_t **call, const char **pos, const json_t *names,
                struct err *err)
{
    struct python_reader reader = {.pos = *pos, .names = names};
    const int rc =
        read_members(*call = json_object(), &reader, ')', '=', 1, err);

    *pos = reader.pos;
    if (rc < 0) {
        json_decref(*call);
        *call = NULL;
    }
    return rc < 0 ? -1 : 0;
}

const char *python_unknown(const json_t *value)
{
    return json_string_value(json_object_get(value, UNKNOWN));
}

json_t *python_make_unknown(const char *text)
{
    return json_pack("{s:s}", UNKNOWN, text);
}
