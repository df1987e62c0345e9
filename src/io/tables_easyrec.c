/* SPDX-License-Identifier: MIT */
#include "io/tables_easyrec.h"

#include "base/text.h"
#include "core/table.h"
#include "io/proto_text.h"
#include "io/tables_found.h"

#include <string.h>

/* Number of rows that a vocabulary has in addition to its words: one for the
 * default value, and one for words outside of the vocabulary. */
#define EXTRA_ROWS 2

struct easyrec_reader {
    struct tables_found found;
    const json_t *root;
    const char *optimizer; /* NULL: not known */
    /* owned; names of the features that groups use pooled or as sequences;
     * NULL: there are no groups */
    json_t *pooled, *sequences;
    json_t *as_pooled; /* owned; tables that pooled features use */
};

/* Returns the values of a field; NULL if there are none. */
static json_t *values(const json_t *message, const char *name)
{
    return json_object_get(message, name);
}

/* Returns the last value of a field, which is the one that counts. */
static json_t *value(const json_t *message, const char *name)
{
    const json_t *all = values(message, name);

    return json_array_get(all, json_array_size(all) - 1);
}

static size_t line_of(const json_t *message)
{
    return (size_t)json_integer_value(json_object_get(message, PROTO_LINE));
}

/* Returns an integer of a message as text; NULL if it is absent. */
static const char *whole(const json_t *message, const char *name,
                         struct arena *arena)
{
    const json_t *found = value(message, name);

    return found ? json_cell(found, arena) : NULL;
}

/* --- groups --- */

static void add_names(json_t *set, const json_t *group)
{
    size_t i;
    json_t *name;

    json_array_foreach(values(group, "feature_names"), i, name)
    {
        if (json_is_string(name))
            json_object_set_new(set, json_string_value(name), json_true());
    }
}

/* Sorts the features of all groups by their use. */
static void read_groups(struct easyrec_reader *reader)
{
    const json_t *model = value(reader->root, "model_config");
    json_t *group, *inner;
    size_t i, j;

    if (!values(model, "feature_groups"))
        return;
    reader->pooled = json_object();
    reader->sequences = json_object();
    json_array_foreach(values(model, "feature_groups"), i, group)
    {
        const char *type = json_string_value(value(group, "group_type"));
        const bool is_sequence = type && strstr(type, "SEQUENCE");
        const struct tables_options *options = reader->found.cells.options;

        add_names(is_sequence ? reader->sequences : reader->pooled, group);
        json_array_foreach(values(group, "sequence_groups"), j, inner)
        {
            add_names(reader->sequences, inner);
        }
        if (type && !strcmp(type, "WIDE") && options->warn)
            options->warn(options->warn_ctx,
                          text_say(reader->found.cells.arena,
                                   "%s:%zu: the extra tables of a WIDE group "
                                   "are not in the list",
                                   reader->found.source, line_of(group)));
    }
}

/* --- features --- */

/* Returns the rows of a feature's table as text. Returns "" if the feature has
 * none, because it is dense, and NULL after an error. */
static const char *rows_of(const struct easyrec_reader *reader,
                           const json_t *feature, struct err *err)
{
    struct arena *arena = reader->found.cells.arena;
    const char *rows = whole(value(feature, "zch"), "zch_size", arena);
    const size_t n_words = json_array_size(values(feature, "vocab_list"));
    const size_t n_bounds = json_array_size(values(feature, "boundaries"));
    const size_t extra =
        value(feature, "default_bucketize_value") ? 0 : EXTRA_ROWS;
    json_int_t last = -1;
    json_t *entry;
    size_t i;

    if (!rows)
        rows = whole(value(feature, "dynamicemb"), "max_capacity", arena);
    if (!rows)
        rows = whole(feature, "hash_bucket_size", arena);
    if (!rows)
        rows = whole(feature, "num_buckets", arena);
    if (rows)
        return rows;
    if (n_words)
        return arena_printf(arena, "%zu", n_words + extra);
    json_array_foreach(values(feature, "vocab_dict"), i, entry)
    {
        const json_int_t row = json_integer_value(value(entry, "value"));

        last = row > last ? row : last;
    }
    if (last >= 0)
        return arena_printf(arena, "%lld", (long long)last + 1);
    if (n_bounds)
        return arena_printf(arena, "%zu", n_bounds + 1);
    if (!values(feature, "vocab_file"))
        return "";
    err_input(
        err,
        "%s:%zu: the rows of feature '%s' are in its vocab_file, which is "
        "not read; set num_buckets",
        reader->found.source, line_of(feature),
        tables_shown(json_cell(value(feature, "feature_name"), arena), arena));
    return NULL;
}

/* Adds the table of a feature for one use. */
static int add_use(struct easyrec_reader *reader, const json_t *feature,
                   const char *table, const char *rows, const char *pooling,
                   bool is_sequence, struct err *err)
{
    struct tables_found *found = &reader->found;
    struct arena *arena = found->cells.arena;
    const json_t *type = value(feature, "data_type");

    found_begin(found);
    found_set(found, COLUMN_NAME, "embedding_name", table);
    found_set(found, COLUMN_ROWS, "num_buckets", rows);
    found_set(found, COLUMN_DIM, "embedding_dim",
              whole(feature, "embedding_dim", arena));
    found_set(found, COLUMN_POOLING, "pooling_factor", pooling);
    found_set(found, COLUMN_PRECISION, "data_type",
              type ? json_cell(type, arena) : NULL);
    found_set(found, COLUMN_OPTIMIZER, "optimizer", reader->optimizer);
    found_set(found, COLUMN_OUTPUT, "output", is_sequence ? "sequence" : NULL);
    return found_end(found, line_of(feature), FOUND_SHARED, err);
}

/* Returns the lookups per sample of a pooled feature if they are fixed. */
static const char *fixed_lookups(const json_t *feature, const char *kind,
                                 struct arena *arena)
{
    const json_t *dim = value(feature, "value_dim");

    if (json_integer_value(dim) > 0)
        return json_cell(dim, arena);
    return !dim && strstr(kind, "raw_feature") ? "1" : NULL;
}

/* Adds the tables of a feature. `sequence` is the name of its sequence, or NULL
 * if it is not part of one. */
static int add_feature(struct easyrec_reader *reader, const json_t *feature,
                       const char *kind, const char *sequence, struct err *err)
{
    struct arena *arena = reader->found.cells.arena;
    const bool is_sequence = sequence || !strncmp(kind, "sequence_", 9);
    const json_t *given = value(feature, "embedding_name");
    const char *stub = json_string_value(value(feature, "stub_type"));
    const char *name = json_cell(value(feature, "feature_name"), arena), *rows;
    const char *table;
    bool is_pooled, is_listed;

    if (stub && !strcmp(stub, "true"))
        return 0;
    rows = rows_of(reader, feature, err);
    if (!rows)
        return -1;
    if (!*rows && !strstr(kind, "id_feature"))
        return 0;
    if (!*name)
        return err_input(err, "%s:%zu: a feature has no feature_name",
                         reader->found.source, line_of(feature));
    if (sequence)
        name = arena_printf(arena, "%s__%s", sequence, name);
    table =
        given ? json_cell(given, arena) : arena_printf(arena, "%s_emb", name);
    is_pooled = reader->pooled ? json_object_get(reader->pooled, name) != NULL
                               : !is_sequence;
    is_listed = reader->pooled
                    ? json_object_get(reader->sequences, name) != NULL
                    : is_sequence;
    if (is_pooled) {
        json_object_set_new(reader->as_pooled, table, json_true());
        if (add_use(reader, feature, table, *rows ? rows : NULL,
                    is_sequence ? NULL : fixed_lookups(feature, kind, arena),
                    false, err))
            return -1;
    }
    return is_listed
               ? add_use(reader, feature,
                         json_object_get(reader->as_pooled, table)
                             ? arena_printf(arena, "sequence.%s", table)
                             : table,
                         *rows ? rows : NULL,
                         is_sequence ? NULL
                                     : fixed_lookups(feature, kind, arena),
                         true, err)
               : 0;
}

/* Adds the tables of a message with one member, the feature. */
static int add_config(struct easyrec_reader *reader, json_t *config,
                      const char *sequence, struct err *err)
{
    const char *kind;
    json_t *all, *inner;
    size_t i, j;

    json_object_foreach(config, kind, all)
    {
        json_t *feature;

        if (!*kind)
            continue;
        json_array_foreach(all, i, feature)
        {
            if (!json_is_object(feature))
                return err_input(err, "%s:%zu: '%s' is not a feature",
                                 reader->found.source, line_of(config),
                                 tables_shown(kind, reader->found.cells.arena));
            if (strcmp(kind, "sequence_feature") != 0) {
                if (add_feature(reader, feature, kind, sequence, err))
                    return -1;
                continue;
            }
            json_array_foreach(values(feature, "features"), j, inner)
            {
                if (sequence ||
                    add_config(reader, inner,
                               json_cell(value(feature, "sequence_name"),
                                         reader->found.cells.arena),
                               err))
                    return sequence ? err_input(err,
                                                "%s:%zu: a sequence in a "
                                                "sequence",
                                                reader->found.source,
                                                line_of(feature))
                                    : -1;
            }
        }
    }
    return 0;
}

/* --- the file --- */

/* Reads the optimizer of the tables, whose field is named after it. */
static void read_optimizer(struct easyrec_reader *reader)
{
    const struct tables_options *options = reader->found.cells.options;
    struct arena *arena = reader->found.cells.arena;
    const json_t *train = value(reader->root, "train_config");
    json_t *optimizer = value(train, "sparse_optimizer"), *unused;
    const char *key;

    json_object_foreach(optimizer, key, unused)
    {
        const char *end = strstr(key, "_optimizer");
        const char *name =
            end ? arena_strndup(arena, key, (size_t)(end - key)) : "";

        if (end && text_choice(optimizer_names, name) >= 0)
            reader->optimizer = name;
        else if (end && options->warn)
            options->warn(options->warn_ctx,
                          text_say(arena,
                                   "%s:%zu: sparse_optimizer '%s' is not one "
                                   "of a table list; the default is kept",
                                   reader->found.source, line_of(optimizer),
                                   tables_shown(key, arena)));
    }
}

static int read_file(struct easyrec_reader *reader, struct err *err)
{
    struct arena *arena = reader->found.cells.arena;
    struct buf *notes = reader->found.cells.options->notes;
    const json_t *data = value(reader->root, "data_config");
    const char *batch = whole(data, "batch_size", arena);
    uint64_t n;
    json_t *config;
    size_t i;

    read_groups(reader);
    read_optimizer(reader);
    if (notes && batch && text_to_u64(batch, &n))
        buf_printf(notes, "# batch_size %s per GPU\n", batch);
    json_array_foreach(values(reader->root, "feature_configs"), i, config)
    {
        if (!json_is_object(config))
            return err_input(err, "%s:1: feature_configs is not a message",
                             reader->found.source);
        if (add_config(reader, config, NULL, err))
            return -1;
    }
    return 0;
}

bool tables_is_easyrec(const char *text)
{
    return strstr(text, "feature_configs") && strstr(text, "feature_name") &&
           strchr(text, '{');
}

int tables_from_easyrec(struct table_list *list, const char *text, size_t len,
                        const char *source,
                        const struct tables_options *options,
                        struct arena *arena, struct err *err)
{
    struct easyrec_reader reader = {.as_pooled = json_object()};
    json_t *root = NULL;
    int rc;

    found_init(&reader.found, source, options, arena);
    text = found_text(&reader.found, text, len, err);
    rc = text ? proto_text(&root, text, source, err) : -1;
    reader.root = root;
    rc = rc || read_file(&reader, err);
    json_decref(root);
    json_decref(reader.pooled);
    json_decref(reader.sequences);
    json_decref(reader.as_pooled);
    return found_finish(&reader.found, list, rc, "no feature has an embedding",
                        err);
}
