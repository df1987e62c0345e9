/* SPDX-License-Identifier: MIT */
#include "io/python_names.h"

#include "io/python_value.h"

#include <ctype.h>
#include <string.h>

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Maximum length of the variables of a loop, in bytes. */
#define MAX_LOOP 200

/* Moves to the end of a statement: the end of a line outside of brackets and
 * strings. */
static const char *statement_end(const char *pos)
{
    size_t depth = 0;
    char quote = '\0';

    for (; *pos && (*pos != '\n' || depth); pos++) {
        if (*pos == '\\' && pos[1]) {
            pos++;
        } else if (quote) {
            quote = *pos == quote || *pos == '\n' ? '\0' : quote;
        } else if (*pos == '#') {
            pos += strcspn(pos, "\n") - 1;
        } else if (strchr("'\"", *pos)) {
            quote = *pos;
        } else {
            depth += strchr("([{", *pos) != NULL;
            depth -= depth && strchr(")]}", *pos);
        }
    }
    return pos;
}

/* Makes all names unknown that a text mentions. */
static void forget(json_t *names, const char *text, size_t len,
                   struct arena *arena)
{
    size_t n;

    for (const char *pos = text; pos < text + len; pos += n) {
        for (n = 0; pos + n < text + len && is_letter(pos[n]);)
            n++;
        if (n) {
            const char *name = arena_strndup(arena, pos, n);

            json_object_set_new(names, name, python_make_unknown(name));
        }
        n += !n;
    }
}

static bool starts_with_word(const char *text, const char *word)
{
    const size_t len = strlen(word);

    return !strncmp(text, word, len) && !is_letter(text[len]);
}

/* Forgets the loop variables of a statement, also those of comprehensions. */
static void forget_loops(json_t *names, const char *statement,
                         struct arena *arena)
{
    for (const char *pos = statement; (pos = strstr(pos, "for "));) {
        const char *end = NULL;

        pos += strlen("for ");
        for (size_t i = 0; !end && i <= MAX_LOOP && pos[i]; i++)
            end = strncmp(pos + i, " in ", 4) ? NULL : pos + i;
        if (end && (pos == statement + 4 || !is_letter(pos[-5])))
            forget(names, pos, (size_t)(end - pos), arena);
    }
}

/* Returns the '=' of an assignment, or NULL if the statement is not an
 * assignment. */
static const char *find_assignment(const char *statement)
{
    size_t depth = 0;

    for (const char *pos = statement; *pos && !strchr("'\"#", *pos); pos++) {
        depth += strchr("([{", *pos) != NULL;
        depth -= depth && strchr(")]}", *pos);
        if (*pos != '=' || depth)
            continue;
        return pos[1] == '=' || pos == statement || strchr("<>!", pos[-1])
                   ? NULL
                   : pos;
    }
    return NULL;
}

/* Stores the value of a name. A second value makes the name unknown. */
static void assign(json_t *names, const char *name, const char *expression)
{
    const json_t *old = json_object_get(names, name);
    json_t *value = NULL;
    struct err unused = {0};

    if (python_value(&value, &expression, names, &unused) || *expression)
        value = (json_decref(value), python_make_unknown(name));
    if (old && !json_equal(old, value))
        json_object_set_new(names, name, python_make_unknown(name));
    else
        json_object_set(names, name, value);
    json_decref(value);
}

/* Reads a statement: "name = value", "name: type = value" or another one. */
static void read_statement(json_t *names, const char *statement,
                           struct arena *arena)
{
    const char *equals = find_assignment(statement);
    size_t len = 0;

    forget_loops(names, statement, arena);
    if (starts_with_word(statement, "def") ||
        starts_with_word(statement, "async")) {
        const char *open = strchr(statement, '(');

        if (open)
            forget(names, open, strlen(open), arena);
        return;
    }
    if (!equals)
        return;
    while (is_letter(statement[len]))
        len++;
    if (len && (statement[len] == ':' ||
                statement + len + strspn(statement + len, " ") == equals)) {
        assign(names, arena_strndup(arena, statement, len), equals + 1);
    } else if (len && !strchr(".[(", statement[len])) {
        /* "a, b = ..." or "a += ..." */
        forget(names, statement, (size_t)(equals - statement), arena);
    }
}

json_t *python_names(const char *text, struct arena *arena)
{
    json_t *names = json_object();

    while (*text) {
        const char *end = statement_end(text);
        const struct arena_mark mark = arena_mark(arena);
        const char *statement =
            arena_strndup(arena, text, (size_t)(end - text));

        read_statement(names, statement + strspn(statement, " \t\r;"), arena);
        arena_rewind(arena, mark);
        text = end + (*end == '\n');
    }
    return names;
}
