/* SPDX-License-Identifier: MIT */
#include "io/tables_yaml.h"

#include "base/text.h"
#include "io/tables_found.h"
#include "io/tables_json.h"
#include "io/yaml_text.h"

#include <ctype.h>
#include <string.h>

#define BENCHMARK "EmbeddingTablesConfig"
#define MAX_FEATURES 1000000
#define MAX_BASE_ROWS 1000000000000

static size_t line_of(const json_t *mapping)
{
    return (size_t)json_integer_value(json_object_get(mapping, YAML_LINE));
}

/* --- configurations of TorchRec's benchmarks --- */

struct benchmark {
    struct tables_found found;
    const json_t *config; /* EmbeddingTablesConfig */
    size_t line;
    const char *pooling; /* lookups per feature; NULL: not known */
};

/* Reads a count of the configuration. */
static int read_count(json_int_t *out, const struct benchmark *benchmark,
                      const char *name, json_int_t otherwise, json_int_t max,
                      struct err *err)
{
    const json_t *value = json_object_get(benchmark->config, name);

    *out = value ? json_integer_value(value) : otherwise;
    if (!value || (json_is_integer(value) && *out >= 0 && *out <= max))
        return 0;
    return err_input(err, "%s:%zu: %s is not a whole number from 0 to %lld",
                     benchmark->found.source, benchmark->line, name,
                     (long long)max);
}

/* Adds the tables that the benchmark generates, called prefix0, prefix1 ... */
static int add_generated(struct benchmark *benchmark, const char *prefix,
                         const char *number, struct err *err)
{
    struct tables_found *found = &benchmark->found;
    struct arena *arena = found->cells.arena;
    const json_t *type = json_object_get(benchmark->config, "table_data_type");
    json_int_t n, dim, base;

    if (read_count(&n, benchmark, number, 100, MAX_FEATURES, err) ||
        read_count(&dim, benchmark, "embedding_feature_dim", 128,
                   TABLES_MAX_DIM, err) ||
        read_count(&base, benchmark, "base_row_size", 100000, MAX_BASE_ROWS,
                   err))
        return -1;
    for (json_int_t i = 0; i < n; i++) {
        const json_int_t factor = i + 1 > 100 ? i + 1 : 100;

        found_begin(found);
        found_set(found, COLUMN_NAME, "name",
                  arena_printf(arena, "%s%lld", prefix, (long long)i));
        found_set(
            found, COLUMN_ROWS, "base_row_size",
            arena_printf(arena, "%lld", (long long)(factor * base / 100)));
        found_set(found, COLUMN_DIM, "embedding_feature_dim",
                  arena_printf(arena, "%lld", (long long)dim));
        found_set(found, COLUMN_POOLING, "pooling_factor", benchmark->pooling);
        found_set(found, COLUMN_PRECISION, "table_data_type",
                  type ? json_cell(type, arena) : NULL);
        if (found_end(found, benchmark->line, FOUND_SAME, err))
            return -1;
    }
    return 0;
}

/* Adds a table of additional_tables. */
static int add_additional(struct benchmark *benchmark, const json_t *table,
                          struct err *err)
{
    struct tables_found *found = &benchmark->found;
    struct arena *arena = found->cells.arena;
    const json_t *features = json_object_get(table, "feature_names");
    const json_t *type = json_object_get(table, "data_type");
    const size_t n = json_array_size(features);
    double pooling;
    static const struct {
        const char *key;
        size_t column;
    } members[] = {{"name", COLUMN_NAME},
                   {"num_embeddings", COLUMN_ROWS},
                   {"embedding_dim", COLUMN_DIM}};

    if (!json_is_object(table))
        return err_input(err, "%s:%zu: additional_tables are not tables",
                         found->source, benchmark->line);
    found_begin(found);
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        const json_t *value = json_object_get(table, members[i].key);

        found_set(found, members[i].column, members[i].key,
                  value ? json_cell(value, arena) : NULL);
    }
    if (n)
        found_set(found, COLUMN_OUTPUTS, "feature_names",
                  arena_printf(arena, "%zu", n));
    type = type ? type : json_object_get(benchmark->config, "table_data_type");
    found_set(found, COLUMN_PRECISION, "data_type",
              type ? json_cell(type, arena) : NULL);
    found_set(found, COLUMN_POOLING, "pooling_factor", benchmark->pooling);
    if (n > 1 && benchmark->pooling &&
        text_to_double(benchmark->pooling, &pooling))
        found_set(found, COLUMN_POOLING, "pooling_factor",
                  arena_printf(arena, "%.15g", pooling * (double)n));
    return found_end(found, line_of(table), FOUND_SAME, err);
}

/* Returns the lookups per feature of the input or, if it has none, of the
 * planner's configuration; NULL if neither has one number. */
static const char *find_pooling(const json_t *root, struct arena *arena)
{
    const json_t *input = json_object_get(
        json_object_get(root, "ModelInputConfig"), "feature_pooling_avg");
    const json_t *planned = json_object_get(
        json_object_get(root, "PlannerConfig"), "pooling_factors");

    return json_is_number(input) ? json_cell(input, arena)
           : json_array_size(planned) == 1
               ? json_cell(json_array_get(planned, 0), arena)
               : NULL;
}

static int read_benchmark(struct table_list *list, json_t *root,
                          const char *source,
                          const struct tables_options *options,
                          struct arena *arena, struct err *err)
{
    struct benchmark benchmark = {.config = json_object_get(root, BENCHMARK),
                                  .pooling = find_pooling(root, arena)};
    json_t *group, *table;
    size_t i, j;
    int rc;

    benchmark.line = line_of(benchmark.config);
    found_init(&benchmark.found, source, options, arena);
    rc = add_generated(&benchmark, "table_", "num_unweighted_features", err) ||
         add_generated(&benchmark, "weighted_table_", "num_weighted_features",
                       err);
    json_array_foreach(json_object_get(benchmark.config, "additional_tables"),
                       i, group)
    {
        json_array_foreach(group, j, table)
        {
            rc = rc || add_additional(&benchmark, table, err);
        }
    }
    return found_finish(&benchmark.found, list, rc, "no tables", err);
}

/* --- lists --- */

/* Returns the value that holds the tables: the root, or the only sequence or
 * mapping below it whose members are tables. */
static json_t *find_list(json_t *root)
{
    static const char *const keys[] = {"tables", "embedding_tables",
                                       "embeddings", "embedding_configs"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        json_t *list = json_object_get(root, keys[i]);

        if (json_array_size(list) || json_object_size(list))
            return list;
    }
    return root;
}

/* Appends a table as JSON, on the line on which it is in the YAML text. `key`
 * is NULL for an element of a list. */
static void add_json(struct buf *out, const char *key, json_t *table,
                     size_t *line)
{
    json_t *copy = json_deep_copy(table);

    for (; *line < line_of(table); ++*line)
        buf_add(out, "\n", 1);
    json_object_del(copy, YAML_LINE);
    if (key) {
        json_print(out, json_string(key));
        buf_add(out, ":", 1);
    }
    json_print(out, copy);
}

/* Writes the tables as JSON, which has the same forms. */
static void to_json(struct buf *out, json_t *tables)
{
    const char *key, *separator = "";
    json_t *table;
    size_t i, line = 1;

    if (json_is_array(tables)) {
        buf_printf(out, "[");
        json_array_foreach(tables, i, table)
        {
            buf_printf(out, "%s", separator);
            add_json(out, NULL, table, &line);
            separator = ",";
        }
        buf_printf(out, "]");
        return;
    }
    buf_printf(out, "{");
    json_object_foreach(tables, key, table)
    {
        if (!*key)
            continue;
        buf_printf(out, "%s", separator);
        add_json(out, key, table, &line);
        separator = ",";
    }
    buf_printf(out, "}");
}

static int read_list(struct table_list *list, json_t *root, const char *source,
                     const struct tables_options *options, struct arena *arena,
                     struct err *err)
{
    json_t *tables = find_list(root);
    struct buf text = {0};
    int rc;

    if (!json_is_array(tables) && !json_is_object(tables))
        return err_input(err, "%s:1: no tables", source);
    to_json(&text, tables);
    rc = tables_from_json(list, text.data, text.len, source, options, arena,
                          err);
    buf_release(&text);
    return rc;
}

/* --- recognition --- */

bool tables_is_yaml(const char *text)
{
    static const char *const keys[] = {BENCHMARK, "num_embeddings", "rows",
                                       "hash_size"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        for (const char *pos = text; (pos = strstr(pos, keys[i])); pos++) {
            const char *end = pos + strlen(keys[i]);

            if ((pos == text || strchr(" \n{,-'\"", pos[-1])) &&
                end[*end == '\'' || *end == '"'] == ':')
                return true;
        }
    return false;
}

int tables_from_yaml(struct table_list *list, const char *text, size_t len,
                     const char *source, const struct tables_options *options,
                     struct arena *arena, struct err *err)
{
    json_t *root;
    int rc;

    if (yaml_text(&root, text, len, source, arena, err))
        return -1;
    rc = (json_object_get(root, BENCHMARK) ? read_benchmark : read_list)(
        list, root, source, options, arena, err);
    json_decref(root);
    return rc ? -1 : 0;
}
