/* SPDX-License-Identifier: MIT */
#include "io/dlrm_jobs.h"

#include "base/path.h"
#include "base/text.h"
#include "io/shell.h"
#include "io/shell_state.h"
#include "io/tables_reader.h"

#include <string.h>

#define OPTION_ROW(id, name, has_value, scripts, is_dense, otherwise) \
    {name, has_value, scripts, is_dense, otherwise},
const struct dlrm_option dlrm_options[] = {OPTIONS(OPTION_ROW)};
const char *const dlrm_scripts[] = {"dlrm_main.py", "dlrm_s_pytorch.py",
                                    "HugeCTR's benchmark"};

enum dlrm_script dlrm_script_of(const struct dlrm_job *job)
{
    unsigned scripts = job->names[1]   ? IN_S
                       : job->names[0] ? IN_MAIN | IN_HUGECTR
                                       : IN_MAIN | IN_S | IN_HUGECTR;
    int script = 0;

    for (int i = 0; i < N_OPTIONS; i++)
        if (job->values[i] && !dlrm_options[i].is_dense &&
            (scripts & dlrm_options[i].scripts))
            scripts &= dlrm_options[i].scripts;
    while (!(scripts & 1u << script))
        script++;
    return (enum dlrm_script)script;
}

bool dlrm_has(enum dlrm_script script, int option, bool is_dense)
{
    return (dlrm_options[option].scripts & 1u << script) &&
           dlrm_options[option].is_dense == is_dense;
}

const char *dlrm_say_value(const struct dlrm_reader *reader, int option,
                           const char *value)
{
    const char *otherwise = dlrm_options[option].otherwise;

    if (value)
        return *value ? tables_shown(shell_shown(value, reader->arena),
                                     reader->arena)
                      : "given";
    return otherwise ? arena_printf(reader->arena, "not given (%s by default)",
                                    otherwise)
                     : "not given";
}

/* True if two command lines give an option the same value. A NULL value stands
 * for the option's default. */
static bool is_same(int option, const char *a, const char *b)
{
    a = a ? a : dlrm_options[option].otherwise;
    b = b ? b : dlrm_options[option].otherwise;
    return a && b ? !strcmp(a, b) : a == b;
}

static int differ(const struct dlrm_reader *reader, const struct dlrm_job *job,
                  const struct dlrm_job *first, int option, struct err *err)
{
    return err_input(err,
                     "%s:%zu: %s is %s here, but %s in line %zu; only one "
                     "command line can be imported",
                     reader->source,
                     job->values[option] ? job->lines[option] : job->first_line,
                     dlrm_options[option].name,
                     dlrm_say_value(reader, option, job->values[option]),
                     dlrm_say_value(reader, option, first->values[option]),
                     first->values[option] ? first->lines[option]
                                           : first->first_line);
}

/* Checks that a command line agrees with the first one of the file, because a
 * file must describe a single job. */
static int compare_jobs(struct dlrm_reader *reader, const struct dlrm_job *job,
                        struct err *err)
{
    const struct dlrm_job *first = &reader->job;

    if (dlrm_script_of(job) != dlrm_script_of(first))
        return err_input(
            err,
            "%s:%zu: a command line of %s, after one of %s in "
            "line %zu; only one command line can be imported",
            reader->source, job->first_line, dlrm_scripts[dlrm_script_of(job)],
            dlrm_scripts[dlrm_script_of(first)], first->first_line);
    for (int i = 0; i < N_OPTIONS; i++) {
        if (is_same(i, job->values[i], first->values[i]))
            continue;
        if (!dlrm_options[i].is_dense)
            return differ(reader, job, first, i, err);
        reader->differs_in_dense = true;
    }
    return 0;
}

/* True if a command line surely calls one of the scripts. HugeCTR's has a name
 * that others have, too, but options of its own. */
static bool calls_script(const struct dlrm_job *job)
{
    return job->names[0] || job->names[1] || job->values[H_ROWS] ||
           job->values[H_LOOKUPS] || job->values[H_DIMS];
}

/* Checks that all options of the tables belong to one script. */
static int check_options(const struct dlrm_reader *reader,
                         const struct dlrm_job *job, struct err *err)
{
    const enum dlrm_script script = dlrm_script_of(job);

    for (int i = 0; i < N_OPTIONS; i++)
        if (job->values[i] && !dlrm_options[i].is_dense &&
            !dlrm_has(script, i, false))
            return err_input(
                err,
                "%s:%zu: %s is not an option of %s, as the other options are",
                reader->source, job->lines[i], dlrm_options[i].name,
                dlrm_scripts[script]);
    return 0;
}

/* Finishes the latest command line: checks it, and compares it with the file's
 * first command line. */
static int end_job(struct dlrm_reader *reader, struct err *err)
{
    const struct dlrm_job *job = &reader->last;

    if (!job->first_line)
        return 0;
    /* If some command line of the file calls one of the scripts, only command
     * lines that call one are read. Other command lines may have the same
     * options, but belong to other programs. */
    if (!reader->n_jobs || (calls_script(job) && !calls_script(&reader->job))) {
        reader->job = *job;
        reader->n_jobs = 1;
    } else if (calls_script(job) || !calls_script(&reader->job)) {
        reader->n_jobs++;
        if (check_options(reader, job, err) || compare_jobs(reader, job, err))
            return -1;
    }
    reader->last = (struct dlrm_job){0};
    return 0;
}

/* Returns the index of the option that a word names, or -1. *value is the text
 * behind '=', or NULL if the word has no '='. */
static int find_option(const char *word, const char **value)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        const size_t len = strlen(dlrm_options[i].name);

        if (strncmp(word, dlrm_options[i].name, len) ||
            (word[len] && word[len] != '='))
            continue;
        *value = word[len] ? word + len + 1 : NULL;
        return i;
    }
    return -1;
}

/* Refuses a word that contains an option's name but does not start with it. The
 * word may be an element of a list in another programming language. */
static int check_word(const struct dlrm_reader *reader,
                      const struct shell_word *word, struct err *err)
{
    const char *text = word->text;

    for (int i = 0; *text && i < N_OPTIONS; i++)
        if (!dlrm_options[i].is_dense && strstr(text + 1, dlrm_options[i].name))
            return err_input(
                err,
                "%s:%zu: %s is inside '%s', where no shell takes it as an "
                "option",
                reader->source, word->line, dlrm_options[i].name,
                tables_shown(shell_shown(text, reader->arena), reader->arena));
    return 0;
}

/* True if word i is TEXT in "bash -c TEXT". The commands in TEXT are read
 * separately. */
static bool is_nested(const struct shell_command *command, size_t i)
{
    const char *option = i >= 2 ? command->words[i - 1].text : "";
    const char *name = i >= 2 ? path_name(command->words[i - 2].text) : "";

    return option[0] == '-' && option[strlen(option) - 1] == 'c' &&
           (!strcmp(name, "bash") || !strcmp(name, "sh"));
}

/* Stores the option that begins at word i in the job. Returns the number of
 * words that the option takes, or 0 if no option begins there. Sets *is_job if
 * the option concerns tables. */
static size_t take_option(struct dlrm_job *job,
                          const struct shell_command *command, size_t i,
                          bool *is_job)
{
    const char *value;
    const int option = find_option(command->words[i].text, &value);
    size_t n = 1;

    if (option < 0)
        return 0;
    *is_job |= !dlrm_options[option].is_dense;
    if (!dlrm_options[option].has_value)
        value = "";
    else if (!value && i + 1 < command->n_words)
        value = command->words[i + n++].text;
    job->values[option] = value ? value : "";
    job->lines[option] = command->words[i].line;
    return n;
}

/* Guesses whether a word with an unknown part is the value of an option that
 * does not concern tables. The guess uses the previous word, and the name of
 * the shell variable in the word. */
static bool is_value_of(const struct shell_command *command, size_t i)
{
    static const char *const telling[] = {"arg", "opt", "extra", "flag",
                                          "param"};
    const char *before = i ? command->words[i - 1].text : "";
    const char *word = command->words[i].text;
    char lower[64] = "";

    for (size_t k = 0; word[k] && k + 1 < sizeof(lower); k++)
        lower[k] =
            word[k] >= 'A' && word[k] <= 'Z' ? (char)(word[k] | 32) : word[k];
    for (size_t k = 0; k < sizeof(telling) / sizeof(*telling); k++)
        if (strstr(lower, telling[k]))
            return false;
    return *word != SHELL_UNKNOWN || (*before == '-' && !strchr(before, '=') &&
                                      shell_name_length(word + 2) > 0);
}

static int read_words(struct dlrm_reader *reader, struct dlrm_job *job,
                      const struct shell_command *command, bool *is_job,
                      struct err *err)
{
    for (size_t i = 0, n; i < command->n_words; i += n ? n : 1) {
        const struct shell_word *word = &command->words[i];
        const char *name = path_name(word->text);

        if (i && is_nested(command, i)) {
            n = 1;
            continue;
        }
        n = take_option(job, command, i, is_job);
        if (!n && check_word(reader, word, err))
            return -1;
        for (int s = 0; s < 2; s++)
            if (!strcmp(name, dlrm_scripts[s]))
                *is_job = job->names[s] = true;
        if (!n && !shell_is_known(word->text) && *is_job &&
            !is_value_of(command, i)) {
            job->extra = word->text;
            job->extra_line = word->line;
        }
        job->last_line = command->words[i + (n ? n : 1) - 1].line;
    }
    return 0;
}

static bool has_values(const struct dlrm_job *job)
{
    bool has = false;

    for (int i = 0; i < N_OPTIONS; i++)
        has |= job->values[i] != NULL;
    return has;
}

/* Handles one command of the script. This is the callback of shell_read. */
static int take_command(void *ctx, const struct shell_command *command,
                        struct err *err)
{
    static const char *const foreign[] = {
        "echo", "printf", "cat",   "cp",   "mv",   "ls",   "grep", "sed",
        "wget", "curl",   "git",   "vi",   "vim",  "rm",   "test", "[",
        "cd",   "chmod",  "patch", "diff", "head", "tail", "eval", NULL};
    struct dlrm_reader *reader = ctx;
    const struct shell_word *first = &command->words[0];
    struct dlrm_job job = {.first_line = first->line}, *last = &reader->last;
    bool is_job = false, continues;

    if (text_choice(foreign, first->text) >= 0)
        return 0;
    if (read_words(reader, &job, command, &is_job, err))
        return -1;
    continues = !strncmp(first->text, "--", 2) && last->first_line &&
                first->line <= last->last_line + 1;
    if (!is_job && !(continues && has_values(&job)))
        return 0;
    if (!continues) {
        if (end_job(reader, err))
            return -1;
        *last = job;
        return 0;
    }
    /* A line that consists of options continues the command line of the
     * previous line, so it is merged into that command line. */
    for (int i = 0; i < N_OPTIONS; i++) {
        const bool is_other = job.values[i] && last->values[i] &&
                              !is_same(i, job.values[i], last->values[i]);

        if (is_other && !dlrm_options[i].is_dense)
            return differ(reader, &job, last, i, err);
        reader->differs_in_dense |= is_other;
        if (job.values[i] && !last->values[i]) {
            last->values[i] = job.values[i];
            last->lines[i] = job.lines[i];
        }
    }
    last->extra = job.extra ? job.extra : last->extra;
    last->last_line = job.last_line;
    return 0;
}

/* --- scripts and Markdown texts --- */

static bool has_option(const char *line)
{
    for (int i = 0; i < N_OPTIONS; i++)
        if (!dlrm_options[i].is_dense && strstr(line, dlrm_options[i].name))
            return true;
    return strstr(line, dlrm_scripts[0]) || strstr(line, dlrm_scripts[1]);
}

static bool is_foreign(const char *line)
{
    return !has_option(line);
}

/* Overwrites a Markdown text with blanks, except for the lines inside its code
 * fences. Returns true if the text has a code fence. */
static bool keep_fenced(char *text)
{
    bool is_inside = false, has_fence = false;

    for (char *p = text, *end; *p; p = *end ? end + 1 : end) {
        const bool is_fence = !strncmp(p + strspn(p, " \t>"), "```", 3);

        end = p + strcspn(p, "\n");
        has_fence |= is_fence;
        is_inside ^= is_fence;
        if (is_fence || !is_inside)
            memset(p, ' ', (size_t)(end - p));
    }
    return has_fence;
}

static int end_script(struct dlrm_reader *reader, struct err *err)
{
    return end_job(reader, err) ? -1 : check_options(reader, &reader->job, err);
}

int dlrm_read_script(struct dlrm_reader *reader, const char *text,
                     struct buf *notes, struct err *err)
{
    const struct dlrm_reader before = *reader;
    struct shell_script script = {.text = text,
                                  .source = reader->source,
                                  .line = 1,
                                  .take = take_command,
                                  .ctx = reader,
                                  .notes = notes,
                                  .arena = reader->arena};
    char *fenced = arena_strdup(reader->arena, text);
    const bool has_fence = keep_fenced(fenced);

    if (has_fence)
        script.text = fenced;
    else if (!shell_read(&script, err))
        return end_script(reader, err);
    else if (!strncmp(text, "#!", 2) || !strchr(text, '\n'))
        /* A script, or a text of a single line, contains only commands, so
         * skipping lines of other text would not help. */
        return -1;
    *reader = before;
    script.is_foreign = is_foreign;
    return shell_read(&script, err) || end_script(reader, err) ? -1 : 0;
}
