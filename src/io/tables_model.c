/* SPDX-License-Identifier: MIT */
#include "io/tables_model.h"

#include "io/tables_found.h"

#include <ctype.h>
#include <string.h>

#define MAX_DEPTH 64
#define BAG "EmbeddingBag("
#define SEQUENCE "Embedding("

/* Module whose contents are being read. */
struct open_module {
    const char *name;
    size_t column, line; /* of its first line */
};

struct model_reader {
    struct tables_found found;
    struct open_module open[MAX_DEPTH];
    size_t depth;
    json_t *paths; /* owned; paths of the tables of the current print */
    json_t *names; /* owned; name of a table: all paths that end in it */
    size_t line;
    size_t root_line; /* line on which the current print begins; 0: none */
    size_t n_first;   /* number of tables of the first print; 0: none yet */
    bool is_counting; /* true: fill `names`, add no tables */
};

/* Finds "(name): Type(" in a module's line. Returns the position of "Type(", or
 * NULL if the line is another one. *column is that of the bracket, and *name is
 * in the arena. */
static const char *module_type(const char **name, size_t *column,
                               const char *line, struct arena *arena)
{
    for (const char *pos = line; (pos = strchr(pos, '(')); pos++) {
        const size_t len = strcspn(pos + 1, "()\r\n");

        if (!len || strncmp(pos + 1 + len, "): ", 3) != 0 ||
            (pos > line && pos[-1] != ' '))
            continue;
        *name = arena_strndup(arena, pos + 1, len);
        *column = (size_t)(pos - line);
        return pos + len + 4;
    }
    return NULL;
}

static bool is_table(const char *type)
{
    const size_t len = !strncmp(type, BAG, strlen(BAG)) ? strlen(BAG)
                       : !strncmp(type, SEQUENCE, strlen(SEQUENCE))
                           ? strlen(SEQUENCE)
                           : 0;

    return len && isdigit((unsigned char)type[len]);
}

bool tables_is_model(const char *text)
{
    for (const char *pos = text; (pos = strstr(pos, "): Embedding")); pos++)
        if (is_table(pos + 3))
            return true;
    return false;
}

/* True if a line begins the print of a model: it ends in "Type(" without a
 * name. */
static bool is_root(const char *line)
{
    const size_t len = strlen(line);

    return len > 1 && line[len - 1] == '(' &&
           isalnum((unsigned char)line[len - 2]) && !strstr(line, "): ");
}

static const char *path_of(const struct model_reader *reader, const char *name)
{
    struct arena *arena = reader->found.cells.arena;
    const char *path = "";

    for (size_t i = 0; i < reader->depth; i++)
        path = arena_printf(arena, "%s%s.", path, reader->open[i].name);
    return arena_printf(arena, "%s%s", path, name);
}

static int refuse_open(const struct model_reader *reader, struct err *err)
{
    const struct open_module *module = &reader->open[reader->depth - 1];

    return err_input(err, "%s:%zu: module '%s' has no end",
                     reader->found.source, module->line,
                     tables_shown(module->name, reader->found.cells.arena));
}

/* Ends the print of a model. Each print must have as many tables as the first
 * one. */
static int end_print(struct model_reader *reader, struct err *err)
{
    const size_t n = json_object_size(reader->paths);

    if (reader->depth)
        return refuse_open(reader, err);
    reader->root_line = 0;
    if (!reader->n_first)
        reader->n_first = n;
    if (n && n != reader->n_first)
        return err_input(err,
                         "%s:%zu: a print of the model ends with %zu tables, "
                         "but the first one has %zu",
                         reader->found.source, reader->line, n,
                         reader->n_first);
    json_object_clear(reader->paths);
    return 0;
}

/* Adds a path to those of a name. Returns the number of paths. */
static size_t count_paths(struct model_reader *reader, const char *name,
                          const char *path)
{
    json_t *paths = json_object_get(reader->names, name);

    if (reader->is_counting && !paths) {
        paths = json_object();
        json_object_set_new(reader->names, name, paths);
    }
    if (reader->is_counting)
        json_object_set_new(paths, path, json_true());
    return json_object_size(paths);
}

/* Adds the table of a line such as "(t): EmbeddingBag(1000, 16, mode='sum')".
 * `type` begins at the name of its class. */
static int add_table(struct model_reader *reader, const char *name,
                     const char *type, struct err *err)
{
    struct tables_found *found = &reader->found;
    struct arena *arena = found->cells.arena;
    const bool is_bag = !strncmp(type, BAG, strlen(BAG));
    const char *path = path_of(reader, name);
    const char *rows = type + strlen(is_bag ? BAG : SEQUENCE);
    const size_t n_rows = strspn(rows, "0123456789");
    const char *dim = rows + n_rows + strspn(rows + n_rows, ", ");
    const size_t n_dim = strspn(dim, "0123456789");
    const size_t n_paths = count_paths(reader, name, path);

    if (!n_dim || !strchr(",)", dim[n_dim]) || !strchr(dim, ')'))
        return err_input(err, "%s:%zu: '%s' has no rows and columns",
                         found->source, reader->line,
                         tables_shown(name, arena));
    if (json_object_get(reader->paths, path))
        return err_input(err, "%s:%zu: module '%s' is printed twice",
                         found->source, reader->line,
                         tables_shown(path, arena));
    json_object_set_new(reader->paths, path, json_true());
    if (reader->is_counting)
        return 0;
    found_begin(found);
    found_set(found, COLUMN_NAME, "the name", n_paths > 1 ? path : name);
    found_set(found, COLUMN_ROWS, "num_embeddings",
              arena_strndup(arena, rows, n_rows));
    found_set(found, COLUMN_DIM, "embedding_dim",
              arena_strndup(arena, dim, n_dim));
    found_set(found, COLUMN_OUTPUT, "output", is_bag ? NULL : "sequence");
    return found_end(found, reader->line, FOUND_SAME, err);
}

/* Begins the print of a model. The one before must have ended. */
static int begin_print(struct model_reader *reader, struct err *err)
{
    if (reader->root_line)
        return err_input(err, "%s:%zu: the print of the model has no end",
                         reader->found.source, reader->root_line);
    if (end_print(reader, err))
        return -1;
    reader->root_line = reader->line;
    return 0;
}

/* Ends a module, or the print, if the line is its closing bracket. */
static int end_module(struct model_reader *reader, const char *line,
                      struct err *err)
{
    const size_t len = strlen(line);

    if (!len || line[len - 1] != ')' || (len > 1 && line[len - 2] != ' '))
        return 0;
    if (!reader->depth)
        return reader->root_line ? end_print(reader, err) : 0;
    if (reader->open[reader->depth - 1].column == len - 1)
        reader->depth--;
    return 0;
}

/* Reads a line that begins or ends a module, or is a table. */
static int read_line(struct model_reader *reader, const char *line,
                     struct err *err)
{
    const size_t len = strlen(line);
    const char *name, *type;
    size_t column;

    if (is_root(line))
        return begin_print(reader, err);
    type = module_type(&name, &column, line, reader->found.cells.arena);
    if (!type)
        return end_module(reader, line, err);
    if (reader->depth && column <= reader->open[reader->depth - 1].column)
        return refuse_open(reader, err);
    if (is_table(type))
        return add_table(reader, name, type, err);
    if (len && line[len - 1] == '(' && reader->depth < MAX_DEPTH)
        reader->open[reader->depth++] =
            (struct open_module){name, column, reader->line};
    return 0;
}

static int read_lines(struct model_reader *reader, const char *text,
                      struct err *err)
{
    char *copy = arena_strdup(reader->found.cells.arena, text), *line;

    reader->line = reader->root_line = reader->n_first = 0;
    while ((line = strsep(&copy, "\n"))) {
        size_t len = strlen(line);

        while (len && strchr(" \t\r", line[len - 1]))
            line[--len] = '\0';
        reader->line++;
        if (read_line(reader, line, err))
            return -1;
    }
    return begin_print(reader, err);
}

int tables_from_model(struct table_list *list, const char *text, size_t len,
                      const char *source, const struct tables_options *options,
                      struct arena *arena, struct err *err)
{
    struct model_reader reader = {
        .paths = json_object(), .names = json_object(), .is_counting = true};
    int rc;

    found_init(&reader.found, source, options, arena);
    text = found_text(&reader.found, text, len, err);
    rc = text ? read_lines(&reader, text, err) : -1;
    reader.is_counting = false;
    rc = rc || read_lines(&reader, text, err);
    json_decref(reader.paths);
    json_decref(reader.names);
    return found_finish(&reader.found, list, rc, "no tables", err);
}
