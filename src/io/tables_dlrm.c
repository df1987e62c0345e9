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

/* --- values of options --- */

/* Reads the integers of an option, each from 1 to max. If the option is not
 * given, reads the integers of its default. *n is 0 if the integers are
 * unknown. */
static int read_numbers(uint64_t **out, size_t *n,
                        const struct dlrm_reader *reader, int option,
                        const char *separator, uint64_t max, struct err *err)
{
    const char *pos = reader->job.values[option];
    const bool must_know =
        option == ROWS || option == ROWS_LIST || option == S_ROWS_LIST;

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
                          bool is_main, struct err *err)
{
    static const char *const names[] = {"sgd", "rwsadagrad", "adagrad", NULL};
    const char *name = reader->job.values[S_OPTIMIZER];
    int i;

    if (is_main)
        name = reader->job.values[ADAGRAD] ? "adagrad" : "sgd";
    i = text_choice(names, name ? name : "sgd");
    *out = (enum optimizer)i; /* enum optimizer has the same order as `names` */
    if (i >= 0)
        return 0;
    return err_input(
        err, "%s:%zu: --optimizer '%s' is not sgd, rwsadagrad or adagrad",
        reader->source, reader->job.lines[S_OPTIMIZER],
        tables_shown(shell_shown(name, reader->arena), reader->arena));
}

/* Returns the option that makes the lookups unknown, because they depend on a
 * data set or on a running shell. Returns -1 if the lookups are known. */
static int unknown_lookups(const struct dlrm_job *job, bool is_main)
{
    static const int of_main[] = {DATA, DATA_ONE_HOT};
    static const int of_s[] = {S_LOOKUPS, S_FIXED};

    if (is_main && job->values[HOT_LIST])
        return shell_is_known(job->values[HOT_LIST]) ? -1 : HOT_LIST;
    for (int i = 0; is_main && i < 2; i++)
        if (job->values[of_main[i]])
            return of_main[i];
    for (int i = 0; !is_main && i < 2; i++)
        if (job->values[of_s[i]] && !shell_is_known(job->values[of_s[i]]))
            return of_s[i];
    return !is_main && job->values[S_GENERATION] &&
                   strcmp(job->values[S_GENERATION], "random") != 0
               ? S_GENERATION
               : -1;
}

/* --- the table list --- */

static void note_defaults(const struct dlrm_reader *reader, bool is_main,
                          struct buf *notes)
{
    const struct dlrm_job *job = &reader->job;

    for (int i = is_main ? 0 : FIRST_S; i < (is_main ? FIRST_S : N_OPTIONS);
         i++)
        if (!job->values[i] && dlrm_options[i].otherwise && i != S_GENERATION &&
            !dlrm_is_of_dense(i) && !(i == ROWS && job->values[ROWS_LIST]))
            buf_printf(notes, "# %s is not given: %s, the script's default\n",
                       dlrm_options[i].name, dlrm_options[i].otherwise);
    if (is_main && !job->values[HOT_LIST] && unknown_lookups(job, true) < 0)
        buf_printf(
            notes,
            "# %s is not given: 1 lookup a sample, the script's default\n",
            dlrm_options[HOT_LIST].name);
    if (is_main && !job->values[ADAGRAD])
        buf_printf(notes, "# %s is not given: sgd, the script's default\n",
                   dlrm_options[ADAGRAD].name);
}

/* Returns the text "name value" of an option, for use in a comment. */
static const char *say_option(const struct dlrm_reader *reader, int option)
{
    return text_say(reader->arena, "%s %s", dlrm_options[option].name,
                    dlrm_say_value(reader, option, reader->job.values[option]));
}

static void note_job(const struct dlrm_reader *reader, bool is_main,
                     const struct tables_options *options)
{
    const struct dlrm_job *job = &reader->job;
    const int batch = is_main ? BATCH : S_BATCH, dim = is_main ? DIM : S_DIM;
    const int lookups = unknown_lookups(job, is_main);
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
    if (!notes)
        return;
    note_defaults(reader, is_main, notes);
    dlrm_note_dense(reader, is_main, notes);
    if (job->extra)
        buf_printf(
            notes, "# %s\n",
            text_say(reader->arena,
                     "the value of '%s' is unknown and may hold more options",
                     shell_shown(job->extra, reader->arena)));
    if (job->values[batch] && text_to_u64(job->values[batch], &n_samples))
        buf_printf(notes, "# %s %" PRIu64 ": plan with %s\n",
                   dlrm_options[batch].name, n_samples,
                   is_main ? "--batch-per-gpu" : "--batch");
    else if (job->values[batch])
        buf_printf(notes, "# the value of %s is unknown: plan with %s\n",
                   say_option(reader, batch),
                   is_main ? "--batch-per-gpu" : "--batch");
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
static int given_rows(const struct dlrm_reader *reader, bool is_main,
                      struct err *err)
{
    const struct dlrm_job *job = &reader->job;

    if (job->names[!is_main] || job->values[ROWS_LIST] || job->values[ROWS] ||
        job->values[S_ROWS_LIST])
        return 0;
    return err_input(
        err,
        "%s:1: the number of rows is unknown: none of %s, %s and %s is given",
        reader->source, dlrm_options[ROWS_LIST].name, dlrm_options[ROWS].name,
        dlrm_options[S_ROWS_LIST].name);
}

static int fill_tables(struct table_list *list,
                       const struct dlrm_reader *reader,
                       const struct tables_options *options, struct err *err)
{
    const struct dlrm_job *job = &reader->job;
    const bool is_main = !dlrm_is_s(job);
    const int given = !is_main                 ? S_ROWS_LIST
                      : job->values[ROWS_LIST] ? ROWS_LIST
                                               : ROWS;
    const bool has_lookups = unknown_lookups(job, is_main) < 0;
    uint64_t *dim, *rows, *hot = NULL, *lookups;
    enum optimizer optimizer;
    size_t n_dims, n_rows, n_hot, n_lookups;

    if (given_rows(reader, is_main, err) || check_data(reader, err) ||
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
                     (uint64_t)TABLES_MAX_FACTOR, err) ||
        read_optimizer(&optimizer, reader, is_main, err))
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
        table->optimizer = optimizer;
    }
    note_job(reader, is_main, options);
    return 0;
}

bool tables_is_dlrm(const char *text)
{
    static const int telling[] = {ROWS_LIST,   ROWS,  DIM,
                                  HOT_LIST,    DATA,  DATA_ONE_HOT,
                                  S_ROWS_LIST, S_DIM, S_LOOKUPS};

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
                         "%s:1: no command line of %s or %s describes tables",
                         source, dlrm_scripts[0], dlrm_scripts[1]);
    return fill_tables(list, &reader, options, err);
}
