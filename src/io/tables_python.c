/* SPDX-License-Identifier: MIT */
#include "io/tables_python.h"

#include "io/hugectr_slots.h"
#include "io/python_names.h"
#include "io/python_value.h"
#include "io/tables_found.h"

#include <ctype.h>
#include <string.h>

#define PYTHON_MAX_BYTES ((size_t)16 << 20)
/* Number of characters in front of a call that are searched for the start of
 * its line. */
#define MAX_PREFIX 200

/* Arguments of a constructor that are columns of a table list, by name or by
 * position. */
struct argument {
    const char *name;
    size_t column;
};

static const struct argument config_arguments[] = {
    {"num_embeddings", COLUMN_ROWS},
    {"embedding_dim", COLUMN_DIM},
    {"name", COLUMN_NAME},
    {"data_type", COLUMN_PRECISION},
    {"feature_names", COLUMN_OUTPUTS},
    {0}};
static const struct argument hugectr_arguments[] = {
    {"name", COLUMN_NAME},
    {"max_vocabulary_size", COLUMN_ROWS},
    {"ev_size", COLUMN_DIM},
    {0}};

static const struct {
    const char *call;
    const struct argument *arguments;
    const char *output;
} calls[] = {
    {"EmbeddingBagConfig(", config_arguments, NULL},
    {"EmbeddingConfig(", config_arguments, "sequence"},
    {"EmbeddingTableConfig(", hugectr_arguments, NULL},
    {"SparseEmbedding(", NULL, NULL},
};
#define N_CALLS (sizeof(calls) / sizeof(*calls))

/* Search for calls of constructors, from the start of a text to its end. */
struct call_search {
    const char *text, *pos;
    const char *found[N_CALLS]; /* next call of each constructor, or "" */
    const char *quotes;         /* text up to here was searched for quotes */
    bool is_string;             /* true: `quotes` is in triple quotes */
    const char *counted;        /* text up to here was searched for lines */
    size_t line;                /* line of `counted` */
};

static struct call_search begin_search(const char *text)
{
    return (struct call_search){
        .text = text, .pos = text, .quotes = text, .counted = text, .line = 1};
}

/* Moves behind the triple quotes in front of a position. */
static void pass_quotes(struct call_search *search, const char *pos)
{
    const char *quotes;

    while (search->quotes < pos &&
           (quotes = strstr(search->quotes, "\"\"\"")) && quotes < pos) {
        search->is_string = !search->is_string;
        search->quotes = quotes + 3;
    }
    if (search->quotes < pos)
        search->quotes = pos;
}

/* Returns the line of a position, which must not lie before an earlier one. */
static size_t line_at(struct call_search *search, const char *pos)
{
    for (; search->counted < pos; search->counted++)
        search->line += *search->counted == '\n';
    return search->line;
}

/* True if a call at the position constructs an object: it is neither a
 * definition nor part of a longer name, of a comment or of a longer string. */
static bool is_made(struct call_search *search, const char *pos)
{
    const char *line = pos, *word;

    while (line > search->text && line[-1] != '\n' && pos - line < MAX_PREFIX)
        line--;
    word = line + strspn(line, " \t");
    pass_quotes(search, pos);
    return !search->is_string &&
           !(pos > search->text &&
             (isalnum((unsigned char)pos[-1]) || pos[-1] == '_')) &&
           !memchr(line, '#', (size_t)(pos - line)) &&
           strncmp(word, "class ", 6) != 0 && strncmp(word, "def ", 4) != 0;
}

/* Finds the next call of a constructor, and moves behind its bracket. Returns
 * its index in `calls`, or N_CALLS. */
static size_t next_call(struct call_search *search)
{
    for (;;) {
        const char *first = NULL;
        size_t which = N_CALLS;

        for (size_t i = 0; i < N_CALLS; i++) {
            const char **found = &search->found[i];

            if (!*found || (**found && *found < search->pos))
                *found = strstr(search->pos, calls[i].call);
            if (!*found)
                *found = "";
            if (**found && (!first || *found < first)) {
                first = *found;
                which = i;
            }
        }
        if (!first)
            return N_CALLS;
        search->pos = first + strlen(calls[which].call);
        if (is_made(search, first))
            return which;
    }
}

bool tables_is_python(const char *text)
{
    struct call_search search = begin_search(text);

    return next_call(&search) < N_CALLS;
}

/* Returns the text of a cell. A value that is not known becomes its expression,
 * and *unknown is that of a value that a table needs. */
static const char *cell_text(const char **unknown, const json_t *value,
                             size_t column, struct arena *arena)
{
    const char *expression = python_unknown(value);

    if (column == COLUMN_OUTPUTS) {
        if (expression && !strcmp(expression, "None"))
            return NULL;
        for (size_t i = 0; i < json_array_size(value); i++) {
            const char *each = python_unknown(json_array_get(value, i));

            /* a comprehension, or a list in a list */
            if (each && (*each == '*' || strchr(each, ' ')))
                *unknown = each;
        }
        if (!json_is_array(value))
            *unknown = expression ? expression : "...";
        return arena_printf(arena, "%zu", json_array_size(value));
    }
    if (column == COLUMN_PRECISION) {
        const char *text = expression ? expression : json_cell(value, arena);

        if (*text != '<')
            return text;
        text++; /* "<DataType.FP16: 'FP16'>" */
        return arena_strndup(arena, text, strcspn(text, ":>"));
    }
    if (column == COLUMN_NAME ? !json_is_string(value)
                              : !json_is_integer(value))
        *unknown = expression ? expression : json_cell(value, arena);
    return json_cell(value, arena);
}

/* Adds the table of a constructor. */
static int add_config(struct tables_found *found, size_t which,
                      const json_t *call, size_t line, struct err *err)
{
    struct arena *arena = found->cells.arena;

    found_begin(found);
    for (size_t i = 0; calls[which].arguments[i].name; i++) {
        const struct argument *argument = &calls[which].arguments[i];
        const char *unknown = NULL;
        const json_t *value = json_object_get(call, argument->name);

        if (!value) /* by position */
            value = json_object_get(call, arena_printf(arena, "%zu", i));
        if (!value)
            continue;
        found_set(found, argument->column, argument->name,
                  cell_text(&unknown, value, argument->column, arena));
        if (unknown)
            return err_input(
                err,
                "%s:%zu: %s is '%s', which only the running program knows; "
                "import what it prints with print(model) or with "
                "print(configs)",
                found->source, line, argument->name,
                tables_shown(unknown, arena));
    }
    found_set(found, COLUMN_OUTPUT, "output", calls[which].output);
    return found_end(found, line, FOUND_SAME, err);
}

/* Reads the call that the search has found, and adds its tables. */
static int read_call(struct tables_found *found, struct hugectr_slots *slots,
                     struct call_search *search, size_t which,
                     const json_t *names, struct err *err)
{
    const size_t line = line_at(search, search->pos);
    json_t *call = NULL;
    int rc;

    if (python_call(&call, &search->pos, names, err))
        rc = err_prefix(err, "%s:%zu", found->source, line);
    else
        rc = calls[which].arguments ? add_config(found, which, call, line, err)
                                    : slots_add(slots, found, call, line, err);
    json_decref(call);
    return rc;
}

int tables_from_python(struct table_list *list, const char *text, size_t len,
                       const char *source, const struct tables_options *options,
                       struct arena *arena, struct err *err)
{
    struct tables_found found;
    struct hugectr_slots slots = {0};
    struct call_search search;
    json_t *names;
    size_t which;
    int rc = 0;

    if (len > PYTHON_MAX_BYTES)
        return err_input(err, "%s:1: longer than %zu bytes", source,
                         PYTHON_MAX_BYTES);
    found_init(&found, source, options, arena);
    text = found_text(&found, text, len, err);
    if (!text)
        return found_finish(&found, list, -1, "", err);
    search = begin_search(text);
    names = python_names(text, arena);
    slots_init(&slots, text, names);
    while (!rc && (which = next_call(&search)) < N_CALLS)
        rc = read_call(&found, &slots, &search, which, names, err);
    slots_release(&slots);
    json_decref(names);
    return found_finish(&found, list, rc, "no tables", err);
}
