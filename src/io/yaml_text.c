/* SPDX-License-Identifier: MIT */
#include "io/yaml_text.h"

#include "base/text.h"

#include <ctype.h>
#include <string.h>

#define MAX_DEPTH 32

struct yaml_line {
    char *text;    /* without indentation and comment */
    size_t indent; /* in columns */
    size_t number;
};

struct yaml_reader {
    struct yaml_line *lines; /* lines that are not blank, in the arena */
    size_t n_lines, idx;     /* number of lines, and current line */
    size_t line;             /* line of the last text that was read */
    struct arena *arena;
};

static int read_block(json_t **value, struct yaml_reader *reader, size_t indent,
                      unsigned depth, struct err *err);

/* --- lines --- */

/* Returns the length of a line without a comment and without blanks at its
 * end. */
static size_t trimmed_length(const char *text)
{
    char quote = '\0';
    size_t len = 0;

    for (; text[len]; len++) {
        if (quote)
            quote = text[len] == quote ? '\0' : quote;
        else if (strchr("'\"", text[len]) &&
                 (!len || strchr(" [{,:", text[len - 1])))
            quote = text[len];
        else if (text[len] == '#' && (!len || strchr(" \t", text[len - 1])))
            break;
    }
    while (len && strchr(" \t\r", text[len - 1]))
        len--;
    return len;
}

static int split_lines(struct yaml_reader *reader, const char *text,
                       struct err *err)
{
    char *copy = arena_strdup(reader->arena, text), *line;
    size_t n = 1, number = 0;

    for (const char *pos = text; *pos; pos++)
        n += *pos == '\n';
    reader->lines = ARENA_NEW(reader->arena, struct yaml_line, n);
    while ((line = strsep(&copy, "\n"))) {
        const size_t indent = strspn(line, " ");
        const size_t len = trimmed_length(line + indent);

        reader->line = ++number;
        line += indent;
        line[len] = '\0';
        if (!len || (!strcmp(line, "---") && !reader->n_lines))
            continue;
        if (*line == '\t')
            return err_input(err, "a tab cannot indent a line");
        if (!indent && (!strcmp(line, "---") || !strcmp(line, "...")))
            return err_input(err, "a second document begins");
        reader->lines[reader->n_lines++] =
            (struct yaml_line){line, indent, number};
    }
    return 0;
}

static struct yaml_line *current(struct yaml_reader *reader)
{
    struct yaml_line *line =
        reader->idx < reader->n_lines ? &reader->lines[reader->idx] : NULL;

    if (line)
        reader->line = line->number;
    return line;
}

/* --- scalars and values in brackets --- */

/* Makes the value of a scalar without quotes. */
static json_t *plain(const char *text, size_t len, struct arena *arena)
{
    char *digits = ARENA_NEW(arena, char, len + 1);
    const char *word = arena_strndup(arena, text, len);
    size_t n = 0;
    uint64_t number;
    double real;

    for (size_t i = 0; i < len; i++)
        if (word[i] != '_')
            digits[n++] = word[i];
    if (isdigit((unsigned char)*word) && text_to_u64(digits, &number) &&
        number <= INT64_MAX)
        return json_integer((json_int_t)number);
    if (text_to_double(word, &real))
        return json_real(real);
    return !len || !strcmp(word, "null") || !strcmp(word, "~")
               ? json_null()
               : json_string(word);
}

static int read_quoted(json_t **value, const char **pos, struct err *err)
{
    const char quote = *(*pos)++;
    struct buf out = {0};

    for (; **pos && (**pos != quote || (quote == '\'' && (*pos)[1] == '\''));
         ++*pos) {
        *pos += (quote == '"' && **pos == '\\' && (*pos)[1]) ||
                (quote == '\'' && **pos == '\'');
        buf_add(&out, *pos, 1);
    }
    buf_add(&out, "", 0);
    *value = **pos ? json_string(out.data) : NULL;
    buf_release(&out);
    if (!**pos)
        return err_input(err, "a string has no end");
    ++*pos;
    return *value ? 0 : err_input(err, "a string is not valid UTF-8");
}

static int read_flow(json_t **value, const char **pos, const char *ends,
                     unsigned depth, struct arena *arena, struct err *err);

/* Reads a member of a mapping in brackets, "key: value". */
static int read_pair(json_t *mapping, const char **pos, unsigned depth,
                     struct arena *arena, struct err *err)
{
    json_t *key = NULL, *value = NULL;
    const char *name;

    if (read_flow(&key, pos, ",]}", depth, arena, err)) {
        json_decref(key);
        return -1;
    }
    name = arena_strdup(arena, json_cell(key, arena));
    json_decref(key);
    *pos += strspn(*pos, " \t");
    if (**pos != ':')
        return err_input(err, "'%s' has no ':'", name);
    if (json_object_get(mapping, name))
        return err_input(err, "'%s' is given twice", name);
    ++*pos;
    if (read_flow(&value, pos, ",]}", depth, arena, err)) {
        json_decref(value);
        return -1;
    }
    json_object_set_new(mapping, name, value);
    return 0;
}

/* Reads a sequence or mapping in brackets. */
static int read_brackets(json_t **value, const char **pos, unsigned depth,
                         struct arena *arena, struct err *err)
{
    const bool is_list = **pos == '[';
    const char end = is_list ? ']' : '}';

    ++*pos;
    *value = is_list ? json_array() : json_object();
    while (*(*pos += strspn(*pos, " \t")) != end) {
        json_t *element = NULL;

        if (!**pos)
            return err_input(err, "the text ends before '%c'", end);
        if (is_list ? read_flow(&element, pos, ",]}", depth, arena, err)
                    : read_pair(*value, pos, depth, arena, err)) {
            json_decref(element);
            return -1;
        }
        if (is_list)
            json_array_append_new(*value, element);
        *pos += strspn(*pos, " \t");
        if (**pos == ',')
            ++*pos;
        else if (**pos != end)
            return err_input(err, "no ',' or '%c' after a value", end);
    }
    ++*pos;
    return 0;
}

/* Reads a scalar, or a value in brackets. A plain scalar ends at one of the
 * characters `ends`, or at ": ". */
static int read_flow(json_t **value, const char **pos, const char *ends,
                     unsigned depth, struct arena *arena, struct err *err)
{
    const char first = *(*pos += strspn(*pos, " \t")), *start = *pos;
    size_t len = 0;

    if (depth > MAX_DEPTH)
        return err_input(err, "values are nested too deeply");
    if (first == '\'' || first == '"')
        return read_quoted(value, pos, err);
    if (first == '[' || first == '{')
        return read_brackets(value, pos, depth + 1, arena, err);
    if (first && strchr("&*!|>%@`", first))
        return err_input(err,
                         "'%c' begins an anchor, a tag or a block scalar, "
                         "which is not read",
                         first);
    while (start[len] && !strchr(ends, start[len]) &&
           !(*ends && start[len] == ':' && start[len + 1] == ' '))
        len++;
    *pos += len;
    while (len && start[len - 1] == ' ')
        len--;
    *value = plain(start, len, arena);
    return *value ? 0 : err_input(err, "a scalar is not valid UTF-8");
}

/* Moves behind the current line. If its value begins with a bracket, joins the
 * lines up to the closing one. */
static const char *join_lines(struct yaml_reader *reader, const char *text)
{
    struct buf joined = {0};
    int depth = 0;

    reader->idx++;
    if (!*text || !strchr("[{", *text))
        return text;
    for (;; text = reader->lines[reader->idx++].text) {
        for (const char *pos = text; *pos; pos++)
            depth +=
                (strchr("[{", *pos) != NULL) - (strchr("]}", *pos) != NULL);
        buf_printf(&joined, "%s ", text);
        if (depth <= 0 || !current(reader))
            break;
    }
    text = arena_strndup(reader->arena, joined.data, joined.len - 1);
    buf_release(&joined);
    return text;
}

/* Reads the value behind a key or a dash on the current line. A value in
 * brackets may go on in the next lines. */
static int read_inline(json_t **value, struct yaml_reader *reader,
                       const char *text, struct err *err)
{
    const json_int_t line = (json_int_t)reader->line;
    const char *pos;

    text = join_lines(reader, text);
    pos = text;
    if (read_flow(value, &pos, "", 0, reader->arena, err)) {
        json_decref(*value);
        *value = NULL;
        return -1;
    }
    if (*pos) {
        json_decref(*value);
        *value = NULL;
        return err_input(err, "text follows a value");
    }
    if (json_is_object(*value))
        json_object_set_new(*value, YAML_LINE, json_integer(line));
    return 0;
}

/* --- blocks --- */

static bool is_item(const char *text)
{
    return text[0] == '-' && (!text[1] || text[1] == ' ');
}

/* Returns the ':' behind the key of a line "key: value", or NULL. */
static const char *find_colon(const char *text)
{
    const char quote = *text;
    const char *pos = text;

    if (quote == '\'' || quote == '"') {
        pos = strchr(text + 1, quote);
        pos = pos ? pos + 1 : "";
        return *pos == ':' ? pos : NULL;
    }
    for (; *pos && !strchr("[{", *pos); pos++)
        if (*pos == ':' && (!pos[1] || pos[1] == ' '))
            return pos;
    return NULL;
}

/* Reads the value of a key or dash without a text behind it. */
static int read_nested(json_t **value, struct yaml_reader *reader,
                       size_t indent, bool takes_items, unsigned depth,
                       struct err *err)
{
    const struct yaml_line *line;

    reader->idx++;
    line = current(reader);
    if (line &&
        (line->indent > indent ||
         (takes_items && line->indent == indent && is_item(line->text))))
        return read_block(value, reader, line->indent, depth + 1, err);
    *value = json_null();
    return 0;
}

static int read_items(json_t *list, struct yaml_reader *reader, size_t indent,
                      unsigned depth, struct err *err)
{
    struct yaml_line *line;

    while ((line = current(reader)) && line->indent == indent &&
           is_item(line->text)) {
        const size_t skip = 1 + strspn(line->text + 1, " ");
        json_t *item = NULL;
        int rc;

        if (!line->text[1]) {
            rc = read_nested(&item, reader, indent, false, depth, err);
        } else {
            line->text += skip;
            line->indent += skip;
            rc = read_block(&item, reader, line->indent, depth + 1, err);
        }
        if (rc)
            return -1;
        json_array_append_new(list, item);
    }
    return 0;
}

static int read_members(json_t *mapping, struct yaml_reader *reader,
                        size_t indent, unsigned depth, struct err *err)
{
    struct yaml_line *line;

    while ((line = current(reader)) && line->indent == indent &&
           !is_item(line->text)) {
        const char *colon = find_colon(line->text), *rest, *key = line->text;
        json_t *value = NULL;
        size_t len;

        if (!colon)
            return err_input(err, "a line of a mapping has no ': '");
        len = (size_t)(colon - line->text);
        if (strchr("'\"", *key) && len >= 2) {
            key++;
            len -= 2;
        }
        key = arena_strndup(reader->arena, key, len);
        rest = colon + 1 + strspn(colon + 1, " ");
        if (!*key || json_object_get(mapping, key))
            return err_input(err, "'%s' is %s", key,
                             *key ? "given twice" : "not a key");
        if (*rest ? read_inline(&value, reader, rest, err)
                  : read_nested(&value, reader, indent, true, depth, err))
            return -1;
        if (json_object_set_new(mapping, key, value))
            return err_input(err, "a key is not valid UTF-8");
    }
    return 0;
}

static int read_block(json_t **value, struct yaml_reader *reader, size_t indent,
                      unsigned depth, struct err *err)
{
    const struct yaml_line *line = current(reader);
    int rc;

    if (depth > MAX_DEPTH)
        return err_input(err, "values are nested too deeply");
    if (is_item(line->text)) {
        *value = json_array();
        rc = read_items(*value, reader, indent, depth, err);
    } else if (find_colon(line->text)) {
        *value = json_pack("{s:I}", YAML_LINE, (json_int_t)line->number);
        rc = read_members(*value, reader, indent, depth, err);
    } else {
        return read_inline(value, reader, line->text, err);
    }
    line = rc ? NULL : current(reader);
    if (line && line->indent > indent)
        rc = err_input(err, "a line is indented by %zu blanks instead of %zu",
                       line->indent, indent);
    if (rc) {
        json_decref(*value);
        *value = NULL;
    }
    return rc;
}

int yaml_text(json_t **root, const char *text, size_t len, const char *source,
              struct arena *arena, struct err *err)
{
    struct yaml_reader reader = {.line = 1, .arena = arena};
    const struct yaml_line *line;
    int rc;

    *root = NULL;
    text = arena_strndup(arena, text, len);
    rc = strlen(text) < len ? err_input(err, "a NUL byte, so not a text")
                            : split_lines(&reader, text, err);
    line = rc ? NULL : current(&reader);
    if (!rc)
        rc = line ? read_block(root, &reader, line->indent, 0, err)
                  : err_input(err, "no values");
    if (!rc && current(&reader)) {
        rc = err_input(err, "a line is indented less than the first one");
        json_decref(*root);
        *root = NULL;
    }
    return rc ? err_prefix(err, "%s:%zu", source, reader.line) : 0;
}
