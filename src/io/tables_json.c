/* SPDX-License-Identifier: MIT */
#include "io/tables_private.h"

#include <string.h>

struct reader {
    const char *source;
    struct table_cells cells; /* of a table */
    const size_t *lines;      /* [n tables], where each stands */
};

/* Members are cells: texts or numbers. */
static int read_member(struct reader *reader, const char *key,
                       const json_t *value, struct err *err)
{
    struct table_cells *cells = &reader->cells;
    const size_t column = table_column(key);
    const struct place_field *format = &table_columns[column];
    const char *text;
    bool is_words;

    if (column == N_TABLE_COLUMNS || column == COLUMN_NAME) {
        json_object_set_new(cells->unknown, key, json_true());
        return 0;
    }
    if (cells->texts[column])
        return err_input(err, "%s and %s are the same thing",
                         cells->names[column], key);
    text = json_cell(value, cells->arena);
    cells->names[column] = key;
    cells->texts[column] = text;
    is_words = format->type == MEMBER_TEXT || format->names ||
               column == COLUMN_SHARDING;
    if (is_words ? json_is_string(value) : json_is_number(value))
        return 0;
    return err_input(
        err, "%s must be a %s, not %s", key, is_words ? "text" : "number",
        json_is_string(value) ? "a text" : tables_shown(text, cells->arena));
}

static int read_table(struct reader *reader, struct table *table,
                      const char *name, json_t *object, struct err *err)
{
    struct table_cells *cells = &reader->cells;
    json_t *value;
    const char *key;

    if (!json_is_object(object))
        return err_input(err, "it is no object with 'num_embeddings', "
                              "'embedding_dim' and 'pooling_factor'");
    memset(cells->texts, 0, sizeof(cells->texts));
    cells->names[COLUMN_ROWS] = "num_embeddings";
    cells->names[COLUMN_DIM] = "embedding_dim";
    json_object_foreach(object, key, value)
    {
        if (read_member(reader, key, value, err))
            return -1;
    }
    cells->names[COLUMN_NAME] = "the name";
    cells->texts[COLUMN_NAME] = name;
    return table_from_cells(table, cells, err);
}

static int read_tables(struct reader *reader, struct table_list *list,
                       json_t *root, struct err *err)
{
    const char *const *pooling = &reader->cells.texts[COLUMN_POOLING];
    const char *name;
    json_t *object;
    size_t n = 0;

    json_object_foreach(root, name, object)
    {
        const bool had_pooling = reader->cells.names[COLUMN_POOLING];

        if (read_table(reader, &list->tables[n], name, object, err))
            return err_prefix(err, "%s:%zu: table '%s'", reader->source,
                              reader->lines[n],
                              tables_shown(name, reader->cells.arena));
        if (n && had_pooling != !!*pooling)
            return err_input(err,
                             "%s:%zu: 'pooling_factor' is %s here, but %s "
                             "before: give it for all tables or for none",
                             reader->source, reader->lines[n],
                             *pooling ? "given" : "missing",
                             *pooling ? "missing" : "given");
        n++;
    }
    tables_warn(&reader->cells, reader->source, "member");
    return 0;
}

/* The root: an object that holds tables. */
static int check_root(const json_t *root, const char *source, struct err *err)
{
    const char *wrong =
        !json_is_object(root)
            ? "a list; tables are the members of an object, by name"
        : json_object_get(root, "neuroshard_plan")
            ? "a plan, where a list of tables is expected"
        : !json_object_size(root) ? "no tables"
                                  : NULL;

    return wrong ? err_input(err, "%s:1: %s", source, wrong) : 0;
}

int tables_from_json(struct table_list *list, const char *text, size_t len,
                     const char *source, const struct tables_options *options,
                     struct arena *arena, struct err *err)
{
    struct reader reader = {.source = source,
                            .cells = {.options = options,
                                      .arena = arena,
                                      .unknown = json_object()}};
    json_t *root = NULL;
    int rc;

    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;
        len -= 3;
    }
    rc = json_parse(&root, text, len, source, err) ||
         check_root(root, source, err);
    if (!rc) {
        list->source = arena_strdup(arena, source);
        list->n_tables = json_object_size(root);
        list->tables = ARENA_NEW(arena, struct table, list->n_tables);
        reader.lines = place_child_lines(text, len, 1, arena);
        rc = read_tables(&reader, list, root, err);
    }
    json_decref(root);
    json_decref(reader.cells.unknown);
    return rc ? -1 : 0;
}
