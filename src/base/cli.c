/* SPDX-License-Identifier: MIT */
#include "base/cli.h"

#include "base/cli_help.h"
#include "base/clock.h"
#include "base/file_claims.h"
#include "base/progress.h"
#include "base/text.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Width in columns of a terminal that does not report its width. */
#define USUAL_COLUMNS 80

const struct option_spec progress_options[] = {
    OPTIONS_HEADED(OUTPUT_HEADING),
    {"verbose", 'v', OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "print a progress line every minute if standard error is not a terminal"},
    {0},
};

/* Options that all commands have. They are listed after the command's own
 * options. A command has --wide only if its member `has_wide` is true. */
static const struct option_spec common_options[] = {
    {"wide", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "print full names, all columns and all rows, whatever the terminal's "
     "width"},
    {"json", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "print the answer as JSON"},
    {"help", 'h', OPTION_FLAG, NULL, NULL, 0, 0, NULL, "print this help"},
    {0},
};

/* Inserts an option after those that have the same heading; at the end if there
 * are none. */
static void add_option(struct cli *cli, const struct option_spec *spec,
                       const char *heading)
{
    size_t i = cli->n_specs, j;

    assert(cli->n_specs < COMMAND_MAX_OPTIONS);
    while (i && !cli_is_same_heading(cli->headings[i - 1], heading))
        i--;
    if (!i)
        i = cli->n_specs;
    for (j = cli->n_specs++; j > i; j--) {
        cli->specs[j] = cli->specs[j - 1];
        cli->headings[j] = cli->headings[j - 1];
    }
    cli->specs[i] = spec;
    cli->headings[i] = heading;
}

/* Adds a table of options. Options before its first heading get `heading`. */
static void add_options(struct cli *cli, const struct option_spec *spec,
                        const char *heading)
{
    for (; spec->name; spec++)
        if (spec->type == OPTION_HEADING)
            heading = spec->name;
        else
            add_option(cli, spec, heading);
}

void cli_list_options(struct cli *cli)
{
    for (size_t g = 0; cli->command->options[g]; g++)
        add_options(cli, cli->command->options[g], NULL);
    add_options(cli, &common_options[!cli->command->has_wide], OUTPUT_HEADING);
}

static bool is_within(uint64_t n, const struct option_spec *spec)
{
    return (double)n >= spec->min && (double)n <= spec->max;
}

static int set_whole(struct option_value *value, const struct option_spec *spec,
                     struct err *err)
{
    if (text_to_u64(value->text, &value->u64) && is_within(value->u64, spec))
        return 0;
    return err_usage(
        err, "option '--%s' takes a whole number from %.0f to %.0f, not '%s'",
        spec->name, spec->min, spec->max, value->text);
}

/* Numbers of a list after which no further range is taken. */
#define MOST_NUMBERS 1000000

/* Range of whole numbers, first, first + step ... last. */
struct number_range {
    uint64_t first, last, step;
    bool is_listed; /* a single number */
};

/* Parses "N", "N..M" with N <= M, or "N..M:STEP". */
static bool parse_range(struct number_range *range, char *text,
                        const struct option_spec *spec)
{
    char *dots = strstr(text, ".."), *colon = dots ? strchr(dots, ':') : NULL;

    *range = (struct number_range){.step = 1, .is_listed = !dots};
    if (dots)
        *dots = '\0';
    if (colon)
        *colon = '\0';
    return text_to_u64(text, &range->first) &&
           text_to_u64(dots ? dots + 2 : text, &range->last) &&
           (!colon || text_to_u64(colon + 1, &range->step)) &&
           is_within(range->first, spec) && is_within(range->last, spec) &&
           range->first <= range->last && is_within(range->step, spec);
}

static int compare_numbers(const void *left, const void *right)
{
    const struct option_number *a = left, *b = right;

    return a->n != b->n ? (a->n > b->n) - (a->n < b->n)
                        : b->is_listed - a->is_listed;
}

/* Parses a list of numbers and ranges. Sorts the numbers and leaves out those
 * that occur again. */
static int set_numbers(struct option_value *value,
                       const struct option_spec *spec, struct arena *arena,
                       struct err *err)
{
    struct option_number *all = NULL;
    size_t n = 0, n_kept = 0, capacity = 0;

    value->is_range = strpbrk(value->text, ".,") != NULL;
    for (const char *from = value->text; from; from = strchr(from, ',')) {
        struct number_range range;

        from += *from == ',';
        if (n > MOST_NUMBERS ||
            !parse_range(&range, arena_strndup(arena, from, strcspn(from, ",")),
                         spec)) {
            mem_free(all);
            return err_usage(err,
                             "option '--%s' takes whole numbers from %.0f to "
                             "%.0f, such as 8, 8..64, 8..64:8 or 8,16,32, not "
                             "'%s'",
                             spec->name, spec->min, spec->max, value->text);
        }
        for (uint64_t k = range.first; k <= range.last; k += range.step) {
            all = mem_room(all, n, &capacity, sizeof(*all));
            all[n++] = (struct option_number){k, range.is_listed};
        }
    }
    qsort(all, n, sizeof(*all), compare_numbers);
    value->numbers = ARENA_NEW(arena, struct option_number, n);
    for (size_t i = 0; i < n; i++)
        if (!i || all[i].n != all[i - 1].n)
            value->numbers[n_kept++] = all[i];
    value->n_numbers = n_kept;
    value->u64 = value->numbers[0].n;
    mem_free(all);
    return 0;
}

/* Parses a size. A number without a unit is refused because the unit that the
 * user meant is unknown; 0 is accepted. */
static int set_bytes(struct option_value *value, const struct option_spec *spec,
                     struct err *err)
{
    uint64_t n;

    if (text_to_u64(value->text, &n) && n)
        return err_usage(err, "option '--%s' wants a unit: %sGiB, or %sB",
                         spec->name, value->text, value->text);
    if (text_to_bytes(value->text, &value->u64) &&
        (double)value->u64 >= spec->min)
        return 0;
    return err_usage(err, "option '--%s' takes a size such as 80GiB, not '%s'",
                     spec->name, value->text);
}

/* Parses a number; for OPTION_PERCENT it must end in '%'. */
static int set_number(struct option_value *value,
                      const struct option_spec *spec, struct arena *arena,
                      struct err *err)
{
    const bool is_percent = spec->type == OPTION_PERCENT;
    const size_t len = strcspn(value->text, is_percent ? "%" : "");
    const bool is_number =
        text_to_double(arena_strndup(arena, value->text, len),
                       &value->number) &&
        value->number >= spec->min && value->number <= spec->max;

    if (!is_number || strcmp(value->text + len, is_percent ? "%" : ""))
        return err_usage(
            err,
            is_percent
                ? "option '--%s' takes a percentage from %g%% to %g%%, not '%s'"
                : "option '--%s' takes a number from %g to %g, not '%s'",
            spec->name, spec->min, spec->max, value->text);
    if (is_percent)
        value->number /= 100;
    return 0;
}

/* Adds value->text to the values that were given before. */
static void add_text(struct option_value *value, struct arena *arena)
{
    const char **texts = ARENA_NEW(arena, const char *, value->n_texts + 1);

    for (size_t i = 0; i < value->n_texts; i++)
        texts[i] = value->texts[i];
    texts[value->n_texts++] = value->text;
    value->texts = texts;
}

/* Parses value->text by the option's type. */
static int set_value(struct option_value *value, const struct option_spec *spec,
                     struct arena *arena, struct err *err)
{
    switch (spec->type) {
    case OPTION_U64:
        return set_whole(value, spec, err);
    case OPTION_RANGE:
        return set_numbers(value, spec, arena, err);
    case OPTION_DOUBLE:
    case OPTION_PERCENT:
        return set_number(value, spec, arena, err);
    case OPTION_BYTES:
        return set_bytes(value, spec, err);
    case OPTION_CHOICE:
        value->choice = text_which(spec->choices, value->text);
        if (value->choice >= 0)
            return 0;
        return err_usage(err, "option '--%s' is one of %s, not '%s'",
                         spec->name, spec->choices, value->text);
    case OPTION_STRINGS:
        add_text(value, arena);
        /* fall through */
    case OPTION_STRING:
    case OPTION_OUTPUT:
    case OPTION_RESULT:
    case OPTION_PLAN:
    case OPTION_UPDATE:
    case OPTION_DATABASE:
        if (*value->text)
            return 0;
        return err_usage(err, "option '--%s' is given an empty %s", spec->name,
                         spec->argument);
    case OPTION_FLAG:
    case OPTION_HEADING:
        return 0;
    }
    return 0;
}

/* First code for getopt_long of an option without a letter. The code of an
 * option with a letter is the letter. The code of option i without a letter is
 * FIRST_LONG + i, which is above all characters. */
enum { FIRST_LONG = 256 };

static int code_of(const struct cli *cli, size_t i)
{
    return cli->specs[i]->letter ? cli->specs[i]->letter : FIRST_LONG + (int)i;
}

static void make_getopt_tables(const struct cli *cli, struct option *longs,
                               char *shorts)
{
    *shorts++ = ':';
    for (size_t i = 0; i < cli->n_specs; i++) {
        const struct option_spec *spec = cli->specs[i];
        int takes = spec->type != OPTION_FLAG;

        longs[i] = (struct option){
            .name = spec->name,
            .has_arg = takes ? required_argument : no_argument,
            .val = code_of(cli, i),
        };
        if (spec->letter) {
            *shorts++ = spec->letter;
            if (takes)
                *shorts++ = ':';
        }
    }
    longs[cli->n_specs] = (struct option){0};
    *shorts = '\0';
}

/* Returns the index of the option that has this code of getopt_long; n_specs if
 * no option has the code. */
static size_t find_option(const struct cli *cli, int code)
{
    size_t i = 0;

    while (i < cli->n_specs && code_of(cli, i) != code)
        i++;
    return i;
}

/* Reports a word that getopt does not accept: an unknown option, or an
 * abbreviation of several options. */
static int no_option(const struct cli *cli, const char *word, struct err *err)
{
    const char *names[COMMAND_MAX_OPTIONS + 1] = {0}, *nearest;
    const size_t len = strcspn(word, "=");
    const char *name = arena_strndup(cli->arena, word, len) + strlen("--");
    size_t n = 0;

    for (size_t i = 0; i < cli->n_specs; i++)
        if (!strncmp(cli->specs[i]->name, name, strlen(name)))
            names[n++] = arena_printf(cli->arena, "--%s", cli->specs[i]->name);
    if (n)
        return err_usage(err, "option '%s' is ambiguous: %s", word,
                         text_list(names, " or ", cli->arena));
    for (; n < cli->n_specs; n++)
        names[n] = cli->specs[n]->name;
    nearest = text_nearest(names, name);
    return err_usage(err, "'neuroshard %s' has no option '%s'%s%s%s",
                     cli->command->name, word,
                     nearest ? "; did you mean '--" : "",
                     nearest ? nearest : "", nearest ? "'?" : "");
}

static int usage_error(const struct cli *cli, int code, char **argv,
                       struct err *err)
{
    size_t i = find_option(cli, optopt);
    const struct option_spec *spec = i < cli->n_specs ? cli->specs[i] : NULL;

    if (code == ':' && spec)
        return err_usage(err, "option '--%s' needs a value: %s", spec->name,
                         spec->argument);
    if (spec)
        return err_usage(err, "option '--%s' takes no value", spec->name);
    if (optopt)
        return err_usage(err, "'neuroshard %s' has no option '-%c'",
                         cli->command->name, optopt);
    return no_option(cli, argv[optind - 1], err);
}

static int parse_options(struct cli *cli, int argc, char **argv,
                         struct err *err)
{
    struct option longs[COMMAND_MAX_OPTIONS + 1];
    char shorts[2 * COMMAND_MAX_OPTIONS + 2];
    int code;

    make_getopt_tables(cli, longs, shorts);
    optind = 0;
    opterr = 0;
    while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        size_t i = find_option(cli, code);

        /* the value is missing: getopt took the name of the next option for
         * it */
        if (optarg == argv[optind - 1] && !strncmp(optarg, "--", 2)) {
            optopt = code;
            return usage_error(cli, ':', argv, err);
        }
        if (i == cli->n_specs)
            return usage_error(cli, code, argv, err);
        cli->values[i].given = true;
        cli->values[i].text = optarg;
        if (set_value(&cli->values[i], cli->specs[i], cli->arena, err))
            return -1;
    }
    cli->args = argv + optind;
    cli->n_args = (size_t)(argc - optind);
    return 0;
}

static int set_defaults(struct cli *cli, struct err *err)
{
    for (size_t i = 0; i < cli->n_specs; i++) {
        cli->values[i].text = cli->specs[i]->default_value;
        if (cli->values[i].text &&
            set_value(&cli->values[i], cli->specs[i], cli->arena, err))
            return -1;
    }
    return 0;
}

/* Uses of the file that an option names, by type of option: a mask of enum
 * file_use. */
static const unsigned file_uses[] = {
    [OPTION_OUTPUT] = FILE_WRITE,      [OPTION_RESULT] = FILE_WRITE,
    [OPTION_PLAN] = FILE_WRITE,        [OPTION_UPDATE] = FILE_READ | FILE_WRITE,
    [OPTION_DATABASE] = FILE_DATABASE, [OPTION_CHOICE] = 0,
};

/* Checks an output file that is '-', which means standard output. Standard
 * output takes a single document. With --json this is the JSON document. An
 * OPTION_PLAN file is the same document, so it may be '-' with --json, too.
 * Without --json the first output file that is '-' gets standard output. *first
 * is the name of the option that named this file. */
static int claim_stdout(const char **first, const struct cli *cli,
                        const struct option_spec *spec, struct err *err)
{
    const bool is_json = cli_given(cli, "json");

    if (spec->type == OPTION_UPDATE || spec->type == OPTION_DATABASE)
        return err_usage(
            err,
            "option '--%s' needs a file that can be read and written, not '-'",
            spec->name);
    if (is_json && spec->type == OPTION_RESULT)
        return err_usage(err,
                         "option '--json' needs '--output FILE' with a file, "
                         "not '-': its answer goes to standard output");
    if (is_json && spec->type == OPTION_PLAN)
        return 0;
    if (is_json || *first)
        return err_usage(
            err,
            "options '--%s' and '--%s' would both print a document to standard "
            "output: give '--%s' a file, not '-'",
            is_json ? "json" : *first, spec->name, spec->name);
    *first = spec->name;
    return 0;
}

/* Claims the files that the options name (file_claim), before any file is
 * read. */
static int claim_files(const struct cli *cli, struct err *err)
{
    const char *first = NULL;

    for (size_t i = 0; i < cli->n_specs; i++) {
        const struct option_spec *spec = cli->specs[i];
        const char *path = cli->values[i].text;
        const unsigned uses = file_uses[spec->type];

        if (!uses || !path)
            continue;
        if ((uses & (FILE_WRITE | FILE_DATABASE)) && !strcmp(path, "-") &&
            claim_stdout(&first, cli, spec, err))
            return -1;
        if (file_claim(path, uses, err))
            return err_prefix(err, "option '--%s'", spec->name);
    }
    return 0;
}

static void print_help(const struct cli *cli)
{
    const struct command *command = cli->command;
    const size_t n_columns = cli_columns(cli);
    struct buf out = {0};

    text_wrap(&out,
              arena_printf(cli->arena, "usage: neuroshard %s %s", command->name,
                           command->synopsis),
              0, strlen("usage: "), n_columns);
    buf_printf(&out, "\n\n%s\n", command->summary);
    cli_help_options(cli->specs, cli->headings, cli->n_specs, n_columns,
                     cli->arena, &out);
    if (command->example)
        buf_printf(&out, "\nexample:\n  %s\n", command->example);
    fputs(out.data, stdout);
    buf_release(&out);
}

/* Returns the word that the synopsis of the command uses for file argument n,
 * counted from 0. */
static const char *file_word(const struct cli *cli, size_t n)
{
    const char *word = cli->command->synopsis;

    for (; n; n--)
        word += strcspn(word, " ") + 1;
    return arena_strndup(cli->arena, word, strcspn(word, " "));
}

static int check_files(const struct cli *cli, struct err *err)
{
    const struct command *command = cli->command;

    if (cli->n_args < command->n_args[0])
        return err_usage(err, "%s is missing; usage: neuroshard %s %s",
                         file_word(cli, cli->n_args), command->name,
                         command->synopsis);
    if (cli->n_args > command->n_args[1])
        return err_usage(err,
                         "unexpected argument '%s'; usage: neuroshard %s %s",
                         text_shown(cli->args[command->n_args[1]], cli->arena),
                         command->name, command->synopsis);
    return 0;
}

static int check_needs(const struct cli *cli, struct err *err)
{
    const char *missing = "";

    for (size_t i = 0; i < cli->n_specs; i++)
        if (!cli->values[i].given &&
            text_choice(cli->command->needs, cli->specs[i]->name) >= 0)
            missing =
                arena_printf(cli->arena, "%s%soption '--%s' is needed: %s",
                             missing, *missing ? "; " : "", cli->specs[i]->name,
                             cli_help_text(cli->specs[i], cli->arena));
    return *missing ? err_usage(err, "%s", missing) : 0;
}

int cli_parse(struct cli **out, const struct command *command, int argc,
              char **argv, struct arena *arena, struct err *err)
{
    struct cli *cli = ARENA_NEW(arena, struct cli, 1);

    *out = NULL;
    cli->command = command;
    cli->arena = arena;
    cli->start_ms = clock_ms();
    cli_list_options(cli);
    if (set_defaults(cli, err) || parse_options(cli, argc, argv, err))
        return -1;
    if (cli_given(cli, "help")) {
        print_help(cli);
        return 0;
    }
    *out = cli;
    if (check_files(cli, err) || check_needs(cli, err))
        return -1;
    return claim_files(cli, err);
}

const struct option_value *cli_value(const struct cli *cli, const char *name)
{
    size_t i = 0;

    while (i < cli->n_specs && strcmp(cli->specs[i]->name, name))
        i++;
    assert(i < cli->n_specs);
    return &cli->values[i];
}

bool cli_given(const struct cli *cli, const char *name)
{
    return cli_value(cli, name)->given;
}

const char *cli_string(const struct cli *cli, const char *name)
{
    return cli_value(cli, name)->text;
}

const char *cli_shown(const struct cli *cli, const char *name)
{
    return text_shown(cli_value(cli, name)->text, cli->arena);
}

uint64_t cli_u64(const struct cli *cli, const char *name)
{
    return cli_value(cli, name)->u64;
}

double cli_double(const struct cli *cli, const char *name)
{
    return cli_value(cli, name)->number;
}

int cli_choice(const struct cli *cli, const char *name)
{
    return cli_value(cli, name)->choice;
}

size_t cli_columns(const struct cli *cli)
{
    if (cli->command->has_wide && cli_given(cli, "wide"))
        return SIZE_MAX;
    return terminal_columns(STDOUT_FILENO, USUAL_COLUMNS);
}
