/* SPDX-License-Identifier: MIT */
#include "io/tables_dlrm.h"

#include "base/printable.h"
#include "base/text.h"
#include "io/dlrm_dense.h"
#include "io/dlrm_jobs.h"
#include "io/shell_script.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_SCRIPT_BYTES ((size_t)1 << 20)
#define CRITEO_TABLES 26
/* Most tables of HugeCTR's benchmark; its lists have up to 510. */
#define HUGECTR_MAX_TABLES 1000000

/* --- values of options --- */

/* Reads the integers of an option, each from 1 to max. If the option is not
 * given, reads the integers of its default. *n is 0 if the integers are
 * unknown. */
static int read_numbers(uint64_t **out, size_t *n,
                        const struct dlrm_reader *reader, int option,
                        const char *separator, uint64_t max, struct err *err)
{
    const char *pos = reader->job.values[option];
    const bool must_know = option == ROWS || option == ROWS_LIST ||
                           option == S_ROWS_LIST || option == H_ROWS ||
                           option == H_COUNTS;

    *n = 0;
    pos = pos ? pos : dlrm_options[option].otherwise;
    if (!pos || (!must_know && !shell_is_known(pos)))
        return 0;
    *out = ARENA_NEW(reader->arena, uint64_t, strlen(pos) + 1);
    for (;; pos++) {
        const size_t len = strcspn(pos, separator);
        const char *number = arena_strndup(reader->arena, pos, len);
        uint64_t *value = *out + (*n)++;

        if (!text_to_u64(number, value) || *value < 1 || *value > max)
            return err_input(
                err,
                "%s:%zu: %s has '%s' instead of a whole number from 1 to "
                "%" PRIu64 "%s",
                reader->source, reader->job.lines[option],
                dlrm_options[option].name,
                tables_shown(shell_shown(number, reader->arena), reader->arena),
                max,
                shell_is_known(pos)
                    ? ""
                    : "; a value that only the shell knows cannot be read");
        pos += len;
        if (!*pos)
            return 0;
    }
}

static int check_data(const struct dlrm_reader *reader, struct err *err)
{
    const struct dlrm_job *job = &reader->job;

    for (int i = S_GENERATION; i <= S_QUOTIENTS; i++)
        if (job->values[i] &&
            (i != S_GENERATION || (strcmp(job->values[i], "random") &&
                                   strcmp(job->values[i], "synthetic"))))
            return err_input(err,
                             "%s:%zu: %s makes tables of other sizes than the "
                             "command line gives",
                             reader->source, job->lines[i],
                             dlrm_options[i].name);
    if (job->values[HOT_LIST] && job->values[DATA])
        return err_input(err, "%s:%zu: %s does not go with %s in line %zu",
                         reader->source, job->lines[HOT_LIST],
                         dlrm_options[HOT_LIST].name, dlrm_options[DATA].name,
                         job->lines[DATA]);
    return 0;
}

/* Returns the mean number of lookups per sample that dlrm_s_pytorch.py draws.
 * It is either a fixed number, or the mean of a random number. The random
 * number is uniform up to the given number, rounded, and at least 1. */
static double drawn_lookups(const struct dlrm_reader *reader, uint64_t n_rows,
                            uint64_t n_lookups)
{
    const double most = fmin((double)n_rows, (double)n_lookups);
    const char *fixed = reader->job.values[S_FIXED];

    return fixed && *fixed ? (double)n_lookups : most / 2 + 0.5 / most;
}

static int read_optimizer(enum optimizer *out, const struct dlrm_reader *reader,
                          enum dlrm_script script, struct err *err)
{
    static const char *const names[] = {"sgd", "rwsadagrad", "adagrad",
                                        "rowwise_adagrad", NULL};
    static const enum optimizer optimizers[] = {
        OPTIMIZER_SGD, OPTIMIZER_ROWWISE_ADAGRAD, OPTIMIZER_ADAGRAD,
        OPTIMIZER_ROWWISE_ADAGRAD};
    const char *name = reader->job.values[OPTIMIZER];
    int i;

    if (script == DLRM_MAIN || !name)
        name =
            script != DLRM_S && reader->job.values[ADAGRAD] ? "adagrad" : "sgd";
    i = text_choice(names, name);
    if (i >= 0 && (script == DLRM_HUGECTR ? i != 1 : i < 3)) {
        *out = optimizers[i];
        return 0;
    }
    return err_input(
        err, "%s:%zu: --optimizer '%s' is not sgd, %s or adagrad",
        reader->source, reader->job.lines[OPTIMIZER],
        tables_shown(shell_shown(name, reader->arena), reader->arena),
        script == DLRM_HUGECTR ? "rowwise_adagrad" : "rwsadagrad");
}

/* Returns the option that makes the lookups unknown, because they depend on a
 * data set or on a running shell. Returns -1 if the lookups are known. */
static int unknown_lookups(const struct dlrm_job *job)
{
    /* Options whose value must be known, and options that name a data set. */
    static const struct {
        int known[2], data[2];
    } deciding[] = {
        [DLRM_MAIN] = {{HOT_LIST, -1}, {DATA, DATA_ONE_HOT}},
        [DLRM_S] = {{S_LOOKUPS, S_FIXED}, {-1, -1}},
        [DLRM_HUGECTR] = {{H_LOOKUPS, -1}, {-1, -1}},
    };
    const enum dlrm_script script = dlrm_script_of(job);
    const int *known = deciding[script].known, *data = deciding[script].data;

    for (int i = 0; i < 2; i++)
        if (known[i] >= 0 && job->values[known[i]] &&
            !shell_is_known(job->values[known[i]]))
            return known[i];
    for (int i = 0; i < 2 && !job->values[HOT_LIST]; i++)
        if (data[i] >= 0 && job->values[data[i]])
            return data[i];
    return script == DLRM_S && job->values[S_GENERATION] &&
                   strcmp(job->values[S_GENERATION], "random") != 0
               ? S_GENERATION
               : -1;
}

/* --- the table list --- */

static void note_defaults(const struct dlrm_reader *reader, struct buf *notes)
{
    const struct dlrm_job *job = &reader->job;
    const enum dlrm_script script = dlrm_script_of(job);
    /* HugeCTR's dlrm_main.py, whose default batch is another one */
    const bool is_port = script == DLRM_HUGECTR && job->names[0];

    for (int i = 0; i < N_OPTIONS; i++)
        if (!job->values[i] && dlrm_options[i].otherwise && i != S_GENERATION &&
            dlrm_has(script, i, false) &&
            !(i == ROWS && job->values[ROWS_LIST]) &&
            !(i == OPTIMIZER && script == DLRM_HUGECTR && job->values[ADAGRAD]))
            buf_printf(notes, "# %s is not given: %s, the script's default\n",
                       dlrm_options[i].name,
                       is_port && i == H_BATCH ? dlrm_options[BATCH].otherwise
                                               : dlrm_options[i].otherwise);
    if (script == DLRM_MAIN && !job->values[HOT_LIST] &&
        unknown_lookups(job) < 0)
        buf_printf(
            notes,
            "# %s is not given: 1 lookup a sample, the script's default\n",
            dlrm_options[HOT_LIST].name);
    if (script == DLRM_MAIN && !job->values[ADAGRAD])
        buf_printf(notes, "# %s is not given: sgd, the script's default\n",
                   dlrm_options[ADAGRAD].name);
}

/* Returns the text "name value" of an option, for use in a comment. */
static const char *say_option(const struct dlrm_reader *reader, int option)
{
    return text_say(reader->arena, "%s %s", dlrm_options[option].name,
                    dlrm_say_value(reader, option, reader->job.values[option]));
}

static void note_job(const struct dlrm_reader *reader,
                     const struct tables_options *options)
{
    static const int batches[] = {BATCH, S_BATCH, H_BATCH};
    static const int dims[] = {DIM, S_DIM, H_DIMS};
    const struct dlrm_job *job = &reader->job;
    const enum dlrm_script script = dlrm_script_of(job);
    const int batch = batches[script], dim = dims[script];
    const int lookups = unknown_lookups(job);
    struct buf *notes = options->notes;
    uint64_t n_samples;

    if (job->extra && options->warn)
        options->warn(
            options->warn_ctx,
            text_say(reader->arena,
                     "%s:%zu: the value of '%s' is unknown and may hold more "
                     "options",
                     reader->source, job->extra_line,
                     tables_shown(shell_shown(job->extra, reader->arena),
                                  reader->arena)));
    if (script == DLRM_HUGECTR && job->names[0] && !job->values[OPTIMIZER] &&
        !job->values[ADAGRAD] && options->warn)
        options->warn(options->warn_ctx,
                      arena_printf(reader->arena,
                                   "%s:%zu: %s is not given: sgd is taken, but "
                                   "newer versions of HugeCTR's %s have "
                                   "adagrad by default",
                                   reader->source, job->first_line,
                                   dlrm_options[OPTIMIZER].name,
                                   dlrm_scripts[0]));
    if (!notes)
        return;
    note_defaults(reader, notes);
    dlrm_note_dense(reader, notes);
    if (job->extra)
        buf_printf(
            notes, "# %s\n",
            text_say(reader->arena,
                     "the value of '%s' is unknown and may hold more options",
                     shell_shown(job->extra, reader->arena)));
    if (job->values[batch] && text_to_u64(job->values[batch], &n_samples))
        buf_printf(notes, "# %s %" PRIu64 ": plan with %s\n",
                   dlrm_options[batch].name, n_samples,
                   script == DLRM_MAIN ? "--batch-per-gpu" : "--batch");
    else if (job->values[batch])
        buf_printf(notes, "# the value of %s is unknown: plan with %s\n",
                   say_option(reader, batch),
                   script == DLRM_MAIN ? "--batch-per-gpu" : "--batch");
    if (job->values[dim] && !shell_is_known(job->values[dim]))
        buf_printf(notes, "# the value of %s is unknown: plan with --dim\n",
                   say_option(reader, dim));
    if (lookups >= 0)
        buf_printf(notes,
                   "# %s sets the number of lookups: plan with --pooling\n",
                   say_option(reader, lookups));
}

/* Checks that the number of rows is known. A dlrm script has default rows; a
 * list of options without a script has no default. */
static int given_rows(const struct dlrm_reader *reader, struct err *err)
{
    const struct dlrm_job *job = &reader->job;

    if (job->names[dlrm_script_of(job) == DLRM_S] || job->values[ROWS_LIST] ||
        job->values[ROWS] || job->values[S_ROWS_LIST] || job->values[H_ROWS])
        return 0;
    if (job->extra)
        return err_input(
            err,
            "%s:%zu: the number of rows is unknown: only a running shell knows "
            "'%s'; import the command line that 'bash -x' prints",
            reader->source, job->extra_line,
            tables_shown(shell_shown(job->extra, reader->arena),
                         reader->arena));
    return err_input(
        err,
        "%s:1: the number of rows is unknown: none of %s, %s, %s and %s is "
        "given",
        reader->source, dlrm_options[ROWS_LIST].name, dlrm_options[ROWS].name,
        dlrm_options[S_ROWS_LIST].name, dlrm_options[H_ROWS].name);
}

static int fill_tables(struct table_list *list,
                       const struct dlrm_reader *reader,
                       const struct tables_options *options, struct err *err)
{
    const struct dlrm_job *job = &reader->job;
    const bool is_main = dlrm_script_of(job) == DLRM_MAIN;
    const int given = !is_main                 ? S_ROWS_LIST
                      : job->values[ROWS_LIST] ? ROWS_LIST
                                               : ROWS;
    const bool has_lookups = unknown_lookups(job) < 0;
    uint64_t *dim, *rows, *hot = NULL, *lookups;
    size_t n_dims, n_rows, n_hot, n_lookups;

    if (check_data(reader, err) ||
        read_numbers(&rows, &n_rows, reader, given,
                     given == ROWS ? ""
                     : is_main     ? ","
                                   : "-",
                     INT64_MAX, err) ||
        read_numbers(&dim, &n_dims, reader, is_main ? DIM : S_DIM, "",
                     TABLES_MAX_DIM, err) ||
        read_numbers(&lookups, &n_lookups, reader, S_LOOKUPS, "",
                     (uint64_t)TABLES_MAX_FACTOR, err) ||
        read_numbers(&hot, &n_hot, reader, HOT_LIST, ",",
                     (uint64_t)TABLES_MAX_FACTOR, err))
        return -1;
    list->n_tables = given == ROWS ? CRITEO_TABLES : n_rows;
    if (tables_name(list, "cat_", options, reader->arena, err))
        return -1;
    if (n_hot && n_hot != list->n_tables)
        return err_input(err,
                         "%s:%zu: %s has %zu sizes, but there are %zu tables",
                         reader->source, job->lines[HOT_LIST],
                         dlrm_options[HOT_LIST].name, n_hot, list->n_tables);
    for (size_t i = 0; i < list->n_tables; i++) {
        struct table *table = &list->tables[i];

        table->num_embeddings = rows[i % n_rows];
        table->dim = n_dims ? (uint32_t)*dim : options->dim;
        table->pooling_factor =
            !has_lookups ? (options->pooling > 0 ? options->pooling : NAN)
            : is_main    ? (n_hot ? (double)hot[i] : 1)
                         : drawn_lookups(reader, rows[i % n_rows], *lookups);
    }
    return 0;
}

/* --- HugeCTR's benchmark, which has several tables of each kind --- */

/* Reads the combiner of each kind of tables: s sums its lookups, and c
 * concatenates them. *n is 0 if it is not given. */
static int read_combiners(const char **out, size_t *n,
                          const struct dlrm_reader *reader, struct err *err)
{
    const char *text = reader->job.values[H_COMBINERS];
    char *letters;

    *n = 0;
    if (!text)
        return 0;
    *out = letters = arena_strdup(reader->arena, text);
    for (const char *pos = text;; pos += 2) {
        letters[(*n)++] = *pos;
        if ((*pos != 's' && *pos != 'c') || (pos[1] && pos[1] != ','))
            return err_input(
                err,
                "%s:%zu: %s has '%s' instead of the letters s (sum) and c "
                "(concat), separated by commas",
                reader->source, reader->job.lines[H_COMBINERS],
                dlrm_options[H_COMBINERS].name,
                tables_shown(shell_shown(text, reader->arena), reader->arena));
        if (!pos[1])
            return 0;
    }
}

/* Values of the options by kind of tables. An n is 0 if the values are unknown
 * or not given. */
struct hugectr_kinds {
    uint64_t *counts, *rows, *lookups, *dims;
    const char *combiners;
    size_t n, n_counts, n_lookups, n_dims, n_combiners;
};

/* Checks that an option has a value for each kind of tables. */
static int check_length(const struct dlrm_reader *reader, int option, size_t n,
                        size_t n_kinds, struct err *err)
{
    const struct dlrm_job *job = &reader->job;
    const bool is_given = job->values[option] != NULL;

    if (n == n_kinds)
        return 0;
    return err_input(
        err, "%s:%zu: %s has %zu values%s, but %s has %zu", reader->source,
        is_given ? job->lines[option] : job->first_line,
        dlrm_options[option].name, n, is_given ? "" : " by default",
        dlrm_options[H_ROWS].name, n_kinds);
}

static int read_kinds(struct hugectr_kinds *kinds,
                      const struct dlrm_reader *reader, struct err *err)
{
    if (read_numbers(&kinds->rows, &kinds->n, reader, H_ROWS, ",", INT64_MAX,
                     err) ||
        read_numbers(&kinds->counts, &kinds->n_counts, reader, H_COUNTS, ",",
                     HUGECTR_MAX_TABLES, err) ||
        read_numbers(&kinds->lookups, &kinds->n_lookups, reader, H_LOOKUPS, ",",
                     (uint64_t)TABLES_MAX_FACTOR, err) ||
        read_numbers(&kinds->dims, &kinds->n_dims, reader, H_DIMS, ",",
                     TABLES_MAX_DIM, err) ||
        read_combiners(&kinds->combiners, &kinds->n_combiners, reader, err))
        return -1;
    if (check_length(reader, H_COUNTS, kinds->n_counts, kinds->n, err) ||
        (kinds->n_lookups &&
         check_length(reader, H_LOOKUPS, kinds->n_lookups, kinds->n, err)) ||
        (kinds->n_dims > 1 &&
         check_length(reader, H_DIMS, kinds->n_dims, kinds->n, err)) ||
        (kinds->n_combiners &&
         check_length(reader, H_COMBINERS, kinds->n_combiners, kinds->n, err)))
        return -1;
    return 0;
}

static int fill_kinds(struct table_list *list, const struct dlrm_reader *reader,
                      const struct tables_options *options, struct err *err)
{
    struct hugectr_kinds kinds;
    struct table *table;

    if (read_kinds(&kinds, reader, err))
        return -1;
    for (size_t k = 0; k < kinds.n; k++)
        list->n_tables += kinds.counts[k];
    if (list->n_tables > HUGECTR_MAX_TABLES)
        return err_input(err, "%s:%zu: %s has more than %d tables",
                         reader->source, reader->job.lines[H_COUNTS],
                         dlrm_options[H_COUNTS].name, HUGECTR_MAX_TABLES);
    if (tables_name(list, "cat_", options, reader->arena, err))
        return -1;
    table = list->tables;
    for (size_t k = 0; k < kinds.n; k++)
        for (uint64_t i = 0; i < kinds.counts[k]; i++, table++) {
            table->num_embeddings = kinds.rows[k];
            table->dim = !kinds.n_dims ? options->dim
                                       : (uint32_t)kinds.dims[k % kinds.n_dims];
            table->pooling_factor = kinds.n_lookups ? (double)kinds.lookups[k]
                                    : options->pooling > 0 ? options->pooling
                                                           : NAN;
            if (kinds.n_combiners && kinds.combiners[k] == 'c')
                table->output = OUTPUT_SEQUENCE;
        }
    return 0;
}

/* Fills the list with the tables of the script's command line. */
static int fill_list(struct table_list *list, const struct dlrm_reader *reader,
                     const struct tables_options *options, struct err *err)
{
    const enum dlrm_script script = dlrm_script_of(&reader->job);
    enum optimizer optimizer = OPTIMIZER_SGD;

    if (given_rows(reader, err) ||
        (script == DLRM_HUGECTR ? fill_kinds : fill_tables)(list, reader,
                                                            options, err) ||
        read_optimizer(&optimizer, reader, script, err))
        return -1;
    for (size_t i = 0; i < list->n_tables; i++)
        list->tables[i].optimizer = optimizer;
    note_job(reader, options);
    return 0;
}

bool tables_is_dlrm(const char *text)
{
    static const int telling[] = {
        ROWS_LIST,   ROWS,  DIM,       HOT_LIST, DATA,   DATA_ONE_HOT,
        S_ROWS_LIST, S_DIM, S_LOOKUPS, H_ROWS,   H_DIMS, H_LOOKUPS};

    for (size_t i = 0; i < sizeof(telling) / sizeof(*telling); i++)
        if (strstr(text, dlrm_options[telling[i]].name))
            return true;
    return strstr(text, dlrm_scripts[0]) || strstr(text, dlrm_scripts[1]);
}

int tables_from_dlrm(struct table_list *list, const char *text, size_t len,
                     const char *source, const struct tables_options *options,
                     struct arena *arena, struct err *err)
{
    struct dlrm_reader reader = {.source = source, .arena = arena};

    if (len > MAX_SCRIPT_BYTES || memchr(text, '\0', len) ||
        !text_is_utf8(text, len))
        return err_input(err,
                         "%s:1: not a script or command line of dlrm: larger "
                         "than 1 MiB or not text",
                         source);
    list->source = arena_strdup(arena, source);
    if (dlrm_read_script(&reader, arena_strndup(arena, text, len),
                         options->notes, err))
        return -1;
    if (!reader.n_jobs)
        return err_input(err,
                         "%s:1: no command line of %s, %s or %s describes "
                         "tables",
                         source, dlrm_scripts[0], dlrm_scripts[1],
                         dlrm_scripts[2]);
    return fill_list(list, &reader, options, err);
}
