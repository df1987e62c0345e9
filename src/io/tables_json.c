/* SPDX-License-Identifier: MIT */
#include "io/tables_json.h"

#include "io/tables_columns.h"

#include <string.h>

struct tables_json_reader {
    const char *source;
    struct table_cells cells; /* cells of the table that is being read */
    const size_t *lines;      /* [n_tables] line of each table */
    bool is_list; /* true: the tables are a list, without names as keys */
    size_t depth; /* nesting depth of the tables in the document */
    json_t *seen; /* owned; names of the tables read so far */
};

/* Stores a member of a table as a cell. The member is a text or a number. */
static int read_member(struct tables_json_reader *reader, const char *key,
                       const json_t *value, struct err *err)
{
    struct table_cells *cells = &reader->cells;
    const size_t column =
        strcmp(key, "row") != 0 ? table_column(key) : COLUMN_ROWS;
    const struct place_field *format = &table_columns[column];
    const char *text;
    bool is_words;

    if (column == N_TABLE_COLUMNS || column == COLUMN_NAME) {
        json_object_set_new(cells->unknown, key, json_true());
        return 0;
    }
    if (cells->texts[column])
        return err_input(err, "%s and %s mean the same", cells->names[column],
                         key);
    text = json_cell(value, cells->arena);
    cells->names[column] = key;
    cells->texts[column] = text;
    is_words = format->type == MEMBER_TEXT || format->names ||
               column == COLUMN_SHARDING || column == COLUMN_TIER;
    if (is_words ? json_is_string(value) : json_is_number(value))
        return 0;
    return err_input(
        err, "%s must be a %s, not %s", key, is_words ? "text" : "number",
        json_is_string(value) ? "a text" : tables_shown(text, cells->arena));
}

/* Reads a table whose value is "rows" or "[rows, dim]" instead of an object. */
static int read_sizes(struct tables_json_reader *reader, const json_t *sizes,
                      struct err *err)
{
    static const char *const keys[] = {"num_embeddings", "embedding_dim"};
    const bool is_pair = json_is_array(sizes) && json_array_size(sizes) == 2;

    for (size_t i = 0; i < (is_pair ? 2 : 1); i++) {
        const json_t *size = is_pair ? json_array_get(sizes, i) : sizes;

        if (!json_is_number(size))
            return err_input(
                err,
                "it must be an object with 'num_embeddings', 'embedding_dim' "
                "and 'pooling_factor', or a number of rows, or [rows, dim]");
        if (read_member(reader, keys[i], size, err))
            return -1;
    }
    return 0;
}

static int read_table(struct tables_json_reader *reader, struct table *table,
                      const char *name, json_t *object, struct err *err)
{
    struct table_cells *cells = &reader->cells;
    json_t *value;
    const char *key;

    memset(cells->texts, 0, sizeof(cells->texts));
    cells->names[COLUMN_ROWS] = "num_embeddings";
    cells->names[COLUMN_DIM] = "embedding_dim";
    if (!json_is_object(object) && read_sizes(reader, object, err))
        return -1;
    json_object_foreach(object, key, value)
    {
        if (reader->is_list && (!strcmp(key, "index") || !strcmp(key, "name")))
            continue;
        if (read_member(reader, key, value, err))
            return -1;
    }
    cells->names[COLUMN_NAME] = "the name";
    cells->texts[COLUMN_NAME] = name;
    return table_from_cells(table, cells, err);
}

/* Returns the name of a table that is an element of a list. It is the element's
 * member "name". If the element has no name, it is "t" with the element's
 * member "index", or else with its position in the list. */
static const char *element_name(const struct tables_json_reader *reader,
                                const json_t *object, size_t n)
{
    const json_t *name = json_object_get(object, "name");
    const json_t *index = json_object_get(object, "index");

    if (json_is_string(name))
        return json_string_value(name);
    return json_is_integer(index)
               ? arena_printf(reader->cells.arena, "t%lld",
                              json_integer_value(index))
               : arena_printf(reader->cells.arena, "t%zu", n);
}

/* Makes the names that the options give for the tables of a list. */
static int given_names(struct table_list *named,
                       const struct tables_json_reader *reader, size_t n_tables,
                       struct err *err)
{
    *named =
        (struct table_list){.n_tables = n_tables, .source = reader->source};
    return reader->is_list && reader->cells.options->names
               ? tables_name(named, "t", reader->cells.options,
                             reader->cells.arena, err)
               : 0;
}

static int read_tables(struct tables_json_reader *reader,
                       struct table_list *list, json_t *root, struct err *err)
{
    const char *const *pooling = &reader->cells.texts[COLUMN_POOLING];
    void *pos = json_object_iter(root);
    struct table_list named;

    if (given_names(&named, reader, list->n_tables, err))
        return -1;
    for (size_t n = 0; n < list->n_tables;
         n++, pos = pos ? json_object_iter_next(root, pos) : NULL) {
        const bool had_pooling = reader->cells.names[COLUMN_POOLING];
        json_t *object = reader->is_list ? json_array_get(root, n)
                                         : json_object_iter_value(pos);
        const char *name = named.tables      ? named.tables[n].name
                           : reader->is_list ? element_name(reader, object, n)
                                             : json_object_iter_key(pos);

        if (json_object_get(reader->seen, name))
            return err_input(err, "%s:%zu: two tables are called '%s'",
                             reader->source, reader->lines[n],
                             tables_shown(name, reader->cells.arena));
        json_object_set_new_nocheck(reader->seen, name, json_true());
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
    }
    tables_warn(&reader->cells, reader->source, "member");
    return 0;
}

/* Finds the JSON value that holds the tables. It is an object, a list, or a
 * list that is the only member of an object. */
static int find_tables(struct tables_json_reader *reader, json_t **root,
                       struct err *err)
{
    json_t *tables =
        json_object_size(*root) == 1 ? json_object_get(*root, "tables") : NULL;
    const char *wrong;

    reader->depth = 1;
    if (json_is_array(tables) && !json_is_number(json_array_get(tables, 0))) {
        reader->depth = 2;
        *root = tables;
    }
    reader->is_list = json_is_array(*root);
    for (size_t i = 0; i < json_array_size(*root); i++)
        if (!json_is_object(json_array_get(*root, i)))
            return err_input(err,
                             "%s:1: element %zu of the list is not a table, an "
                             "object with 'row' or 'num_embeddings'",
                             reader->source, i);
    wrong = json_object_get(*root, "neuroshard_plan")
                ? "this is a plan, not a table list"
            : !json_object_size(*root) && !json_array_size(*root) ? "no tables"
                                                                  : NULL;
    return wrong ? err_input(err, "%s:1: %s", reader->source, wrong) : 0;
}

int tables_from_json(struct table_list *list, const char *text, size_t len,
                     const char *source, const struct tables_options *options,
                     struct arena *arena, struct err *err)
{
    struct tables_json_reader reader = {
        .source = source,
        .cells = {.options = options, .arena = arena, .unknown = json_object()},
        .seen = json_object()};
    json_t *root = NULL, *tables;
    int rc;

    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;
        len -= 3;
    }
    rc = json_parse(&root, text, len, source, err);
    tables = root;
    rc = rc || find_tables(&reader, &tables, err);
    if (!rc) {
        list->source = arena_strdup(arena, source);
        list->n_tables =
            reader.is_list ? json_array_size(tables) : json_object_size(tables);
        list->tables = ARENA_NEW(arena, struct table, list->n_tables);
        reader.lines = place_child_lines(text, len, reader.depth, arena);
        rc = read_tables(&reader, list, tables, err);
    }
    json_decref(root);
    json_decref(reader.cells.unknown);
    json_decref(reader.seen);
    return rc ? -1 : 0;
}
