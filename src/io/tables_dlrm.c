/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "io/tables_private.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_SCRIPT_BYTES ((size_t)1 << 20)
#define MAX_VARIABLES 8 /* that stand for each other */
#define CRITEO_TABLES 26
#define S_DEFAULT_LOOKUPS 10
#define LETTERS \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* Of dlrm_main.py, and with S of dlrm_s_pytorch.py. The first ones say what
 * tables there are. */
#define OPTIONS(OPTION)                               \
    OPTION(ROWS_LIST, "--num_embeddings_per_feature") \
    OPTION(ROWS, "--num_embeddings")                  \
    OPTION(DIM, "--embedding_dim")                    \
    OPTION(HOT_LIST, "--multi_hot_sizes")             \
    OPTION(S_ROWS_LIST, "--arch-embedding-size")      \
    OPTION(S_DIM, "--arch-sparse-feature-size")       \
    OPTION(S_LOOKUPS, "--num-indices-per-lookup")     \
    OPTION(S_FIXED, "--num-indices-per-lookup-fixed") \
    OPTION(S_OPTIMIZER, "--optimizer")                \
    OPTION(S_GENERATION, "--data-generation")         \
    OPTION(S_MIXED_DIMS, "--md-flag")                 \
    OPTION(S_QUOTIENTS, "--qr-flag")                  \
    OPTION(ADAGRAD, "--adagrad")                      \
    OPTION(BATCH, "--batch_size")                     \
    OPTION(S_BATCH, "--mini-batch-size")

#define OPTION_ID(id, name) id,
#define OPTION_NAME(id, name) name,
enum { OPTIONS(OPTION_ID) N_OPTIONS };
static const char *const option_names[] = {OPTIONS(OPTION_NAME)};

struct reader {
    const char *text; /* without its comments */
    const char *source;
    struct arena *arena;
    const char *values[N_OPTIONS]; /* NULL: not given */
    size_t lines[N_OPTIONS];
};

static char *without_comments(const char *text, size_t len, struct arena *arena)
{
    char *copy = arena_strndup(arena, text, len);

    for (char *p = copy; *p; p++)
        if (*p == '#' && (p == copy || strchr(" \t\n", p[-1])))
            memset(p, ' ', strcspn(p, "\n"));
    return copy;
}

/* Where the word next stands by itself from `at` on; NULL: nowhere. */
static const char *find_word(const struct reader *reader, const char *at,
                             const char *word)
{
    const size_t len = strlen(word);

    for (; (at = strstr(at, word)); at += len)
        if ((at == reader->text || !strchr(LETTERS "-", at[-1])) &&
            (!at[len] || !strchr(LETTERS "-", at[len])))
            return at;
    return NULL;
}

/* What stands behind an option or a variable; of a "$variable" what it was last
 * set to. */
static const char *value_at(const struct reader *reader, const char *at,
                            int n_variables)
{
    const char *set = NULL, *next, *name;

    at += strspn(at, "= \t\r\n\"'\\");
    if (*at != '$')
        return arena_strndup(reader->arena, at, strspn(at, LETTERS ",.-"));
    name = at + 1 + (at[1] == '{');
    name = arena_strndup(reader->arena, name, strspn(name, LETTERS));
    for (next = reader->text;
         *name && (next = find_word(reader, next, name)) && next < at; next++)
        if (next[strlen(name)] == '=')
            set = next + strlen(name);
    return set && n_variables < MAX_VARIABLES
               ? value_at(reader, set, n_variables + 1)
               : arena_strndup(reader->arena, at, strcspn(at, " \t\r\n\"'\\"));
}

static size_t line_of(const struct reader *reader, const char *at)
{
    size_t line = 1;

    for (const char *p = reader->text; p < at; p++)
        line += *p == '\n';
    return line;
}

static int read_options(struct reader *reader, struct err *err)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *name = option_names[i], *at = reader->text;

        for (; (at = find_word(reader, at, name)); at += strlen(name)) {
            const char *value = value_at(reader, at + strlen(name), 0);

            if (!reader->values[i]) {
                reader->values[i] = value;
                reader->lines[i] = line_of(reader, at);
            } else if (i < S_MIXED_DIMS && strcmp(value, reader->values[i]))
                return err_input(
                    err,
                    "%s:%zu: %s is given again, as something else than in line "
                    "%zu; one command line is imported",
                    reader->source, line_of(reader, at), name,
                    reader->lines[i]);
        }
    }
    return 0;
}

/* An option's whole numbers from 1 to max, as many as there are; where it is
 * not given, what stands there stays. */
static int read_numbers(uint64_t **out, size_t *n, const struct reader *reader,
                        int option, const char *separator, uint64_t max,
                        struct err *err)
{
    const char *at = reader->values[option];

    if (!at)
        return 0;
    *out = ARENA_NEW(reader->arena, uint64_t, strlen(at) + 1);
    *n = 0;
    for (;; at++) {
        const size_t len = strcspn(at, separator);
        const char *number = arena_strndup(reader->arena, at, len);
        uint64_t *value = *out + (*n)++;

        if (!text_to_u64(number, value) || *value < 1 || *value > max)
            return err_input(
                err,
                "%s:%zu: %s has '%s' where a whole number from 1 to %" PRIu64
                " is wanted%s",
                reader->source, reader->lines[option], option_names[option],
                tables_shown(number, reader->arena), max,
                strchr(number, '$') ? ", not what only a shell knows" : "");
        at += len;
        if (!*at)
            return 0;
    }
}

/* Of each table, or one of all. */
static int read_rows(uint64_t **rows, size_t *n, const struct reader *reader,
                     struct err *err)
{
    static const int given[] = {ROWS_LIST, S_ROWS_LIST, ROWS};
    static const char *const separators[] = {",", "-", ""};

    for (int i = S_GENERATION; i <= S_QUOTIENTS; i++)
        if (reader->values[i] &&
            (i != S_GENERATION || !strcmp(reader->values[i], "dataset")))
            return err_input(err,
                             "%s:%zu: %s makes tables of other sizes than the "
                             "command line says",
                             reader->source, reader->lines[i], option_names[i]);
    for (size_t g = 0; g < 3; g++)
        if (reader->values[given[g]])
            return read_numbers(rows, n, reader, given[g], separators[g],
                                INT64_MAX, err);
    return err_input(
        err, "%s:1: neither %s, %s nor %s says how many rows tables have",
        reader->source, option_names[ROWS_LIST], option_names[ROWS],
        option_names[S_ROWS_LIST]);
}

/* Look-ups a sample that dlrm_s_pytorch.py draws: so many, or a part of them,
 * evenly drawn and rounded, but at least 1. */
static double drawn_lookups(const struct reader *reader, uint64_t n_rows,
                            uint64_t n_lookups)
{
    const double most = fmin((double)n_rows, (double)n_lookups);

    return reader->values[S_FIXED] ? (double)n_lookups : most / 2 + 0.5 / most;
}

static int read_optimizer(enum optimizer *out, const struct reader *reader,
                          bool is_main, struct err *err)
{
    static const char *const names[] = {"sgd", "rwsadagrad", "adagrad", NULL};
    const char *name = reader->values[S_OPTIMIZER];
    int i;

    if (is_main)
        name = reader->values[ADAGRAD] ? "adagrad" : "sgd";
    i = text_choice(names, name ? name : "sgd");
    *out = (enum optimizer)i; /* they stand in one order */
    if (i >= 0)
        return 0;
    return err_input(
        err, "%s:%zu: --optimizer '%s' is none of sgd, rwsadagrad and adagrad",
        reader->source, reader->lines[S_OPTIMIZER],
        tables_shown(name, reader->arena));
}

static int fill_tables(struct table_list *list, const struct reader *reader,
                       const struct tables_options *options, struct err *err)
{
    const bool is_main = reader->values[ROWS_LIST] || reader->values[ROWS];
    const int batch = is_main ? BATCH : S_BATCH;
    const uint64_t max_factor = (uint64_t)TABLES_MAX_FACTOR;
    uint64_t *dim = &(uint64_t){is_main ? 64 : 2}, *rows, *hot = NULL;
    uint64_t *n_lookups = &(uint64_t){S_DEFAULT_LOOKUPS}, n_samples;
    enum optimizer optimizer;
    size_t n, n_rows, n_hot = 0;

    if (read_rows(&rows, &n_rows, reader, err) ||
        read_numbers(&dim, &n, reader, is_main ? DIM : S_DIM, "",
                     TABLES_MAX_DIM, err) ||
        read_numbers(&n_lookups, &n, reader, S_LOOKUPS, "", max_factor, err) ||
        read_numbers(&hot, &n_hot, reader, HOT_LIST, ",", max_factor, err) ||
        read_optimizer(&optimizer, reader, is_main, err))
        return -1;
    list->n_tables =
        reader->values[ROWS_LIST] || !is_main ? n_rows : CRITEO_TABLES;
    if (tables_name(list, "cat_", options, reader->arena, err))
        return -1;
    if (n_hot && n_hot != list->n_tables)
        return err_input(err,
                         "%s:%zu: %s has %zu sizes, but there are %zu tables",
                         reader->source, reader->lines[HOT_LIST],
                         option_names[HOT_LIST], n_hot, list->n_tables);
    for (size_t i = 0; i < list->n_tables; i++) {
        struct table *table = &list->tables[i];

        table->num_embeddings = rows[i % n_rows];
        table->dim = (uint32_t)*dim;
        table->pooling_factor =
            is_main ? (n_hot ? (double)hot[i] : 1)
                    : drawn_lookups(reader, rows[i % n_rows], *n_lookups);
        table->optimizer = optimizer;
    }
    if (reader->values[batch] &&
        text_to_u64(reader->values[batch], &n_samples) && options->notes)
        buf_printf(options->notes, "# %s %" PRIu64 ": plan with %s\n",
                   option_names[batch], n_samples,
                   is_main ? "--batch-per-gpu" : "--batch");
    return 0;
}

bool tables_is_dlrm(const char *text)
{
    for (int i = 0; i < S_OPTIMIZER; i++)
        if (strstr(text, option_names[i]))
            return true;
    return false;
}

int tables_from_dlrm(struct table_list *list, const char *text, size_t len,
                     const char *source, const struct tables_options *options,
                     struct arena *arena, struct err *err)
{
    struct reader reader = {.source = source, .arena = arena};

    if (len > MAX_SCRIPT_BYTES || memchr(text, '\0', len) ||
        !text_is_utf8(text, len))
        return err_input(err,
                         "%s:1: no script or command line of dlrm, but more "
                         "than 1 MiB or no text",
                         source);
    list->source = arena_strdup(arena, source);
    reader.text = without_comments(text, len, arena);
    if (read_options(&reader, err))
        return -1;
    return fill_tables(list, &reader, options, err);
}
