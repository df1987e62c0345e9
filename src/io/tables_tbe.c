/* SPDX-License-Identifier: MIT */
#include "io/tables_tbe.h"

#include "base/json.h"
#include "core/problem.h"
#include "core/rank_law.h"

#include <math.h>
#include <string.h>

#define MAX_FEATURES 1000000

/* Values of the report's features. A value is given by a list with one entry
 * per feature, or by a single number for all features. Both are members of the
 * report's root, or of an object in it. If the report has no feature_table_map,
 * each feature has its own table. The first three values are whole numbers. */
enum { ROWS, DIM, TABLE, BATCH, POOLING, N_VALUES };
static const struct {
    const char *object, *list, *all;
    double min, max;
} values_of[N_VALUES] = {
    [ROWS] = {NULL, "Es", "E", 1, 0x1p62},
    [DIM] = {NULL, "Ds", "D", 1, TABLES_MAX_DIM},
    [TABLE] = {NULL, "feature_table_map", NULL, 0, MAX_FEATURES},
    [BATCH] = {"batch_params", "Bs", "B", 0, PROBLEM_MAX_BATCH},
    [POOLING] = {"pooling_params", "Ls", "L", 0, TABLES_MAX_FACTOR},
};

struct tbe_reader {
    struct arena *arena;
    struct json_place root;
    uint64_t n_features;
    double *values[N_VALUES]; /* each array is [n_features] */
    double batch;             /* mean batch over the features */
};

/* Properties of a table: values that its features share, and sums over its
 * features. */
struct used {
    /* n_lookups and n_outputs are sums per batch */
    double n_rows, dim, n_lookups, n_outputs;
    double most; /* lookups of the feature with the most lookups, hot_feature */
    size_t hot_feature, n_features;
};

struct law {
    double q, s;
};
#define LAW(member) MEMBER_OF(struct law, member)
static const struct place_field law_fields[] = {
    {"zipf_q", LAW(q), true, 1, 1e9, NULL},
    {"zipf_s", LAW(s), true, 0, TABLE_MAX_ZIPF, NULL},
};

static int read_values(struct tbe_reader *reader, int which, struct err *err)
{
    const char *object = values_of[which].object, *key = values_of[which].list;
    const double min = values_of[which].min;
    const double max =
        which == TABLE ? (double)reader->n_features - 1 : values_of[which].max;
    const struct place_field all = {
        values_of[which].all, MEMBER_REAL, 0, true, min, max, NULL};
    struct json_place place = reader->root;
    double *values = ARENA_NEW(reader->arena, double, reader->n_features);
    const json_t *list = NULL;

    if ((object && place_object(&place, &place, object, err)) ||
        (place_has(&place, key) &&
         place_list_of(&list, &place, key, reader->n_features, "but T is",
                       err)))
        return -1;
    for (size_t i = 0; i < reader->n_features; i++) {
        values[i] = (double)i;
        if (list ? place_list_double(&values[i], &place, key, list, i, min, max,
                                     err)
                 : all.key && place_fields(&values[i], &place, &all, 1, err))
            return -1;
        if (which <= TABLE && values[i] != floor(values[i]))
            return place_error(&place, err, "%s has %g, not a whole number",
                               list ? key : all.key, values[i]);
    }
    reader->values[which] = values;
    return 0;
}

/* Adds the lookups of a feature to the sums of its table. */
static int add_feature(struct used *tables, const struct tbe_reader *reader,
                       size_t feature, struct err *err)
{
    double *const *values = reader->values;
    struct used *used = &tables[(size_t)values[TABLE][feature]];
    const double n_rows = values[ROWS][feature], dim = values[DIM][feature];
    const double n_lookups = values[POOLING][feature] * values[BATCH][feature];

    if (used->n_features++ && (used->n_rows != n_rows || used->dim != dim))
        return place_error(&reader->root, err,
                           "feature %zu has other rows or columns than an "
                           "earlier feature of the same table",
                           feature);
    used->n_rows = n_rows;
    used->dim = dim;
    used->n_outputs += values[BATCH][feature];
    used->n_lookups += n_lookups;
    if (n_lookups >= used->most) {
        used->most = n_lookups;
        used->hot_feature = feature;
    }
    return 0;
}

/*
 * Reads the skew of a table. FBGEMM gives each of a few rows (heavy hitters)
 * its own share of the lookups. Row k of the other rows has a share
 * proportional to (k + q)^-s, which is a range of ranks of a longer Zipf law. A
 * table list cannot express a range of a Zipf law, so the table gets the reuse
 * histogram of one batch instead.
 */
static int read_skew(struct table *table, const struct used *used,
                     const struct json_place *place, struct err *err)
{
    struct law laws = {.q = 1};
    struct table longer = *table;
    double rows[REUSE_BINS] = {0}, n_rows = 0, rest = 1, hitter, begin, end;
    const json_t *hitters = NULL;
    struct rank_law law;
    size_t i = 0;

    if (PLACE_FIELDS(&laws, place, law_fields, err) ||
        place_list(&hitters, place, "heavy_hitters", err))
        return -1;
    for (; i < json_array_size(hitters) && (double)i < used->n_rows; i++) {
        if (place_list_double(&hitter, place, "heavy_hitters", hitters, i, 0, 1,
                              err))
            return -1;
        rows[reuse_bin_of(hitter * used->n_lookups)] +=
            fmin(1, hitter * used->n_lookups);
        rest = fmax(0, rest - hitter);
    }
    table->skew_assumed = false;
    table->zipf_alpha = laws.s;
    if ((!i && laws.q == 1) || used->n_lookups <= 0)
        return 0;
    begin = (double)i + laws.q - 1;
    end = used->n_rows + laws.q - 1;
    longer.num_embeddings = (uint64_t)fmin(ceil(end), 0x1p62);
    longer.zipf_alpha = laws.s;
    law_init(&law, &longer, used->n_lookups);
    rest /= law_before(&law, end) - law_before(&law, begin);
    if (begin < end && isfinite(rest))
        law_add_rows(&law, used->n_lookups * rest, begin, end, rows);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        n_rows += rows[k];
    for (unsigned k = 0; k < REUSE_BINS; k++)
        table->bins[k] = n_rows > 0 ? rows[k] / n_rows : 0;
    table->has_bins = n_rows > 0;
    return 0;
}

static int fill_table(struct table *table, const struct used *used,
                      const struct tbe_reader *reader, struct err *err)
{
    static const char list_key[] = "indices_params_list";
    const bool has_list = place_has(&reader->root, list_key);
    const char *key = has_list ? list_key : "indices_params";
    struct json_place place = reader->root;
    const json_t *list = NULL;

    if (!used->n_features)
        return place_error(
            &reader->root, err,
            "no feature uses table '%s', but a later table is used",
            table->name);
    if (used->n_lookups > TABLES_MAX_FACTOR * reader->batch)
        return place_error(&reader->root, err,
                           "table '%s' has more than %.0f lookups a sample",
                           table->name, TABLES_MAX_FACTOR);
    table->num_embeddings = (uint64_t)used->n_rows;
    table->dim = (uint32_t)used->dim;
    table->pooling_factor = used->n_lookups / reader->batch;
    table->num_outputs = used->n_outputs / reader->batch;
    if (!place_has(&place, key))
        return 0;
    if (has_list ? place_list_of(&list, &place, key, reader->n_features,
                                 "but T is", err) ||
                       place_element(&place, &place, key, list,
                                     used->hot_feature, err)
                 : place_object(&place, &place, key, err))
        return -1;
    return read_skew(table, used, &place, err);
}

/* Checks that a report with a list of widths (Ds) also has a list of rows (Es).
 * Without Es, the report's E is only the mean of the rows. */
static int check_lists(const struct tbe_reader *reader, struct err *err)
{
    return !place_has(&reader->root, "Ds") || place_has(&reader->root, "Es")
               ? 0
               : place_error(&reader->root, err, "Ds is given, but not Es");
}

/* Checks that the mean of a list agrees with the mean that the report gives,
 * rounded up. */
static int check_mean(const struct tbe_reader *reader, int which,
                      struct err *err)
{
    const char *key = values_of[which].all;
    const json_t *said = json_object_get(reader->root.object, key);
    double mean = 0;

    if (!json_is_number(said) ||
        !place_has(&reader->root, values_of[which].list))
        return 0;
    for (size_t i = 0; i < reader->n_features; i++)
        mean += reader->values[which][i] / (double)reader->n_features;
    /* FBGEMM adds the values in fp32, which rounds the mean. */
    if (fabs(json_number_value(said) - mean) <= 1 + 1e-5 * mean)
        return 0;
    return place_error(&reader->root, err,
                       "%s is %.10g, but the mean of %s is %.10g", key,
                       json_number_value(said), values_of[which].list, mean);
}

/* Checks the report's member "mixed_dim", which must be true if the tables'
 * widths differ. */
static int check_mixed(const struct tbe_reader *reader, struct err *err)
{
    const json_t *said = json_object_get(reader->root.object, "mixed_dim");
    bool is_mixed = false;

    for (size_t i = 1; i < reader->n_features; i++)
        is_mixed |= reader->values[DIM][i] != reader->values[DIM][0];
    if (!json_is_boolean(said) || json_is_true(said) == is_mixed)
        return 0;
    return place_error(
        &reader->root, err, "mixed_dim is %s, but the features have %s",
        is_mixed ? "false" : "true", is_mixed ? "several widths" : "one width");
}

static int read_tables(struct table_list *list, struct tbe_reader *reader,
                       const struct tables_options *options, struct err *err)
{
    struct used *used;

    if (place_u64(&reader->n_features, &reader->root, "T", 1, MAX_FEATURES,
                  err) ||
        check_lists(reader, err))
        return -1;
    for (int which = 0; which < N_VALUES; which++)
        if (read_values(reader, which, err))
            return -1;
    if (check_mean(reader, ROWS, err) || check_mean(reader, DIM, err) ||
        check_mixed(reader, err))
        return -1;
    for (size_t i = 0; i < reader->n_features; i++) {
        reader->batch += reader->values[BATCH][i];
        list->n_tables =
            max_u64(list->n_tables, (uint64_t)reader->values[TABLE][i] + 1);
    }
    reader->batch /= (double)reader->n_features;
    if (!(reader->batch > 0))
        return place_error(&reader->root, err, "no feature has a batch");
    if (tables_name(list, "t", options, reader->arena, err))
        return -1;
    used = ARENA_NEW(reader->arena, struct used, list->n_tables);
    for (size_t i = 0; i < reader->n_features; i++)
        if (add_feature(used, reader, i, err))
            return -1;
    for (size_t i = 0; i < list->n_tables; i++)
        if (fill_table(&list->tables[i], &used[i], reader, err))
            return -1;
    if (options->notes)
        buf_printf(
            options->notes,
            "# the histograms are of a batch of %.0f: plan with --batch\n",
            reader->batch);
    return 0;
}

bool tables_is_tbe(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '{' &&
           strstr(text, "\"batch_params\"") && strstr(text, "\"T\"");
}

int tables_from_tbe(struct table_list *list, const char *text, size_t len,
                    const char *source, const struct tables_options *options,
                    struct arena *arena, struct err *err)
{
    struct tbe_reader reader = {.arena = arena};
    json_t *root = NULL;
    int rc = json_parse(&root, text, len, source, err) ||
             place_root(&reader.root, root, source, arena, err);

    if (!rc) {
        reader.root.lines = place_child_lines(text, len, 1, arena);
        reader.root.line = 1;
        *list = (struct table_list){.source = arena_strdup(arena, source)};
        rc = read_tables(list, &reader, options, err);
    }
    json_decref(root);
    return rc ? -1 : 0;
}
