/* SPDX-License-Identifier: MIT */
#include "io/tables_found.h"

#include <inttypes.h>
#include <string.h>

void found_init(struct tables_found *found, const char *source,
                const struct tables_options *options, struct arena *arena)
{
    *found = (struct tables_found){
        .source = source,
        .cells = {.options = options, .arena = arena},
        .seen = json_object(),
    };
}

const char *found_text(const struct tables_found *found, const char *text,
                       size_t len, struct err *err)
{
    const char *copy = arena_strndup(found->cells.arena, text, len);

    if (strlen(copy) == len)
        return copy;
    (void)err_input(err, "%s:%zu: a NUL byte, so not a text", found->source,
                    found_line(copy, copy + strlen(copy)));
    return NULL;
}

void found_begin(struct tables_found *found)
{
    memset(found->cells.texts, 0, sizeof(found->cells.texts));
    found->cells.names[COLUMN_NAME] = "the name";
    found->cells.names[COLUMN_ROWS] = "num_embeddings";
    found->cells.names[COLUMN_DIM] = "dim";
}

void found_set(struct tables_found *found, size_t column, const char *name,
               const char *text)
{
    found->cells.texts[column] = text;
    found->cells.names[column] = name;
}

size_t found_line(const char *text, const char *pos)
{
    size_t n = 1;

    for (; text < pos; text++)
        n += *text == '\n';
    return n;
}

/* Combines a table with an earlier one of the same name. */
static int combine(struct table *old, const struct table *table,
                   enum found_again again, size_t line, struct err *err)
{
    if (old->num_embeddings != table->num_embeddings || old->dim != table->dim)
        return err_input(err,
                         "table '%s' is %" PRIu64 " x %u, but %" PRIu64
                         " x %u in line %zu",
                         table->name, table->num_embeddings, table->dim,
                         old->num_embeddings, old->dim, line);
    if (again == FOUND_SHARED) {
        old->pooling_factor += table->pooling_factor;
        old->num_outputs += table->num_outputs;
    }
    if (old->precision == table->precision && old->output == table->output &&
        (again == FOUND_SHARED || old->num_outputs == table->num_outputs))
        return 0;
    return err_input(err, "table '%s' differs from the one in line %zu",
                     table->name, line);
}

static int add_table(struct tables_found *found, size_t line,
                     enum found_again again, struct err *err)
{
    struct table table;
    const json_t *old;

    if (table_from_cells(&table, &found->cells, err)) {
        const char *name = found->cells.texts[COLUMN_NAME];

        return name && *name
                   ? err_prefix(err, "table '%s'",
                                tables_shown(name, found->cells.arena))
                   : -1;
    }
    old = json_object_get(found->seen, table.name);
    if (old)
        return combine(
            &found->tables[json_integer_value(json_array_get(old, 0))], &table,
            again, (size_t)json_integer_value(json_array_get(old, 1)), err);
    json_object_set_new(
        found->seen, table.name,
        json_pack("[II]", (json_int_t)found->n_tables, (json_int_t)line));
    found->tables = mem_room(found->tables, found->n_tables, &found->cap,
                             sizeof(*found->tables));
    found->tables[found->n_tables++] = table;
    return 0;
}

int found_end(struct tables_found *found, size_t line, enum found_again again,
              struct err *err)
{
    return add_table(found, line, again, err)
               ? err_prefix(err, "%s:%zu", found->source, line)
               : 0;
}

int found_finish(struct tables_found *found, struct table_list *list, int rc,
                 const char *none, struct err *err)
{
    if (!rc && !found->n_tables)
        rc = err_input(err, "%s:1: %s", found->source, none);
    *list = (struct table_list){
        .n_tables = found->n_tables,
        .tables = arena_keep(found->cells.arena, found->tables, found->n_tables,
                             sizeof(*found->tables)),
        .source = arena_strdup(found->cells.arena, found->source)};
    json_decref(found->seen);
    return rc ? -1 : 0;
}
