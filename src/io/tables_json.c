/* SPDX-License-Identifier: MIT */
#include "io/tables_private.h"

#include "base/json.h"
#include "base/json_place.h"
#include "base/text.h"

#include <string.h>

#define KEY_ROWS "num_embeddings"
#define KEY_DIM "embedding_dim"
#define KEY_POOLING "pooling_factor"

/* Each member, with its range. */
#define TABLE(member) MEMBER_OF(struct table, member)
static const struct place_field fields[] = {
    {KEY_ROWS, TABLE(num_embeddings), true, 1, 0x1p63, NULL},
    {KEY_DIM, TABLE(dim), false, 1, TABLES_MAX_DIM, NULL},
    {KEY_POOLING, TABLE(pooling_factor), false, 0, TABLES_MAX_FACTOR, NULL},
    {"dedup", TABLE(dedup), false, TABLE_MIN_DEDUP, 1, NULL},
    {"row_order", TABLE(row_order), false, 0, 0, row_order_names},
};
#define N_FIELDS (sizeof(fields) / sizeof(*fields))

struct reader {
    const char *source;
    const struct tables_options *options;
    struct arena *arena;
    const size_t *lines; /* [n tables], where each stands */
    json_t *unknown;     /* owned; an object, the set of members left out */
    size_t n_pooling;    /* tables that give one */
};

/* Notes the unknown ones, and takes no null for a value left out. */
static int check_members(struct reader *reader, const struct json_place *place,
                         json_t *object, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        size_t i = 0;

        while (i < N_FIELDS && strcmp(key, fields[i].key) != 0)
            i++;
        if (i == N_FIELDS)
            json_object_set_new(reader->unknown, key, json_true());
        else if (json_is_null(value))
            return place_error(place, err, "%s must be a %s, not null", key,
                               fields[i].names ? "text" : "number");
    }
    return 0;
}

static int read_table(struct reader *reader, struct table *table,
                      const char *name, json_t *object, size_t line,
                      struct err *err)
{
    struct json_place place = {
        .object = object, .arena = reader->arena, .is_strict = true};

    if (!json_is_object(object))
        return err_set(err, ERR_INPUT,
                       "%s:%zu: '%s' is no table, which would be an object "
                       "with '" KEY_ROWS "', '" KEY_DIM "' and '" KEY_POOLING
                       "'",
                       reader->source, line, tables_shown(name, reader->arena));
    if (!*name || !text_is_printable(name))
        return err_set(err, ERR_INPUT,
                       "%s:%zu: the name '%s' is empty or not printable",
                       reader->source, line, tables_shown(name, reader->arena));
    place.source =
        arena_printf(reader->arena, "%.200s:%zu: table '%s'", reader->source,
                     line, tables_shown(name, reader->arena));
    table_init(table);
    table->name = arena_strdup(reader->arena, name);
    table->dim = reader->options->dim;
    table->pooling_factor = 1;
    if (check_members(reader, &place, object, err) ||
        PLACE_FIELDS(table, &place, fields, err))
        return -1;
    if (!table->dim)
        return place_error(&place, err,
                           KEY_DIM " is missing, and no option '--dim D' "
                                   "fills it");
    table->pooling_factor += 0.0; /* no -0 */
    reader->n_pooling += place_has(&place, KEY_POOLING);
    return 0;
}

static void warn_unknown(const struct reader *reader)
{
    size_t n = json_object_size(reader->unknown), i = 0;
    const char **names = ARENA_NEW(reader->arena, const char *, n);
    const char *key;
    json_t *value;

    json_object_foreach(reader->unknown, key, value)
    {
        names[i++] = key;
    }
    tables_warn_unknown(reader->options, reader->source, "members", names, n,
                        reader->arena);
}

static int read_tables(struct reader *reader, struct table_list *list,
                       json_t *root, struct err *err)
{
    const char *name;
    json_t *object;
    size_t n = 0;

    json_object_foreach(root, name, object)
    {
        size_t n_pooling = reader->n_pooling, line = reader->lines[n];

        if (read_table(reader, &list->tables[n], name, object, line, err))
            return -1;
        n++;
        if (reader->n_pooling != n && reader->n_pooling != 0)
            return err_set(err, ERR_INPUT,
                           "%s:%zu: '" KEY_POOLING "' is %s here, but %s "
                           "before: give it for all tables or for none",
                           reader->source, line,
                           n_pooling == reader->n_pooling ? "missing" : "given",
                           n_pooling == 0 ? "missing" : "given");
    }
    return 0;
}

/* The root: an object that holds tables. */
static int check_root(const json_t *root, const char *source, struct err *err)
{
    if (!json_is_object(root))
        return err_set(err, ERR_INPUT,
                       "%s:1: a list; tables are the members of an object, by "
                       "name",
                       source);
    if (json_object_get(root, "neuroshard_plan"))
        return err_set(err, ERR_INPUT,
                       "%s:1: a plan, where a list of tables is expected",
                       source);
    if (!json_object_size(root))
        return err_set(err, ERR_INPUT, "%s:1: no tables", source);
    return 0;
}

int tables_from_json(struct table_list *list, const char *text, size_t len,
                     const char *source, const struct tables_options *options,
                     struct arena *arena, struct err *err)
{
    struct reader reader = {.source = source,
                            .options = options,
                            .arena = arena,
                            .unknown = json_object()};
    json_t *root = NULL;
    int rc = -1;

    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;
        len -= 3;
    }
    if (json_parse(&root, text, len, source, err) ||
        check_root(root, source, err))
        goto out;
    list->source = arena_strdup(arena, source);
    list->n_tables = json_object_size(root);
    list->tables = ARENA_NEW(arena, struct table, list->n_tables);
    reader.lines = place_child_lines(text, len, 1, arena);
    if (read_tables(&reader, list, root, err))
        goto out;
    warn_unknown(&reader);
    if (!reader.n_pooling)
        tables_warn(
            options,
            text_say(arena,
                     "%s: no table has a '" KEY_POOLING
                     "', so one look-up a sample is assumed for every table",
                     source));
    rc = 0;
out:
    json_decref(root);
    json_decref(reader.unknown);
    return rc;
}
