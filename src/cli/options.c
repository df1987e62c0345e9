/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/file.h"
#include "base/progress.h"
#include "base/text.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct option_value {
    bool given;
    const char *text; /* as typed, or the default; NULL: neither */
    uint64_t u64;
    uint64_t last; /* RANGE: from u64 to it */
    bool is_range;
    double number;
};

struct cli {
    const struct command *command;
    struct arena *arena;
    struct option_value *values; /* [options] */
    char **args;
    size_t n_args;
    bool wants_help;
};

static size_t count_options(const struct command *command)
{
    size_t n = 0;

    while (command->options[n].name)
        n++;
    return n;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);

    while (len) {
        size_t n = strcspn(choices, "|");

        if (n == len && !memcmp(choices, text, n))
            return true;
        if (!choices[n])
            return false;
        choices += n + 1;
    }
    return false;
}

static bool is_within(uint64_t n, const struct option_spec *spec)
{
    return (double)n >= spec->min && (double)n <= spec->max;
}

static int set_u64(struct option_value *value, const struct option_spec *spec,
                   struct err *err)
{
    if (text_to_u64(value->text, &value->u64) && is_within(value->u64, spec))
        return 0;
    return err_set(err, ERR_USAGE,
                   "option '--%s' takes a whole number from %.0f to %.0f, "
                   "not '%s'",
                   spec->name, spec->min, spec->max, value->text);
}

/* "N", or "N..M" with N <= M. */
static int set_range(struct option_value *value, const struct option_spec *spec,
                     struct err *err)
{
    const char *dots = strstr(value->text, "..");
    size_t len = dots ? (size_t)(dots - value->text) : 0;
    char first[24] = "";

    value->is_range = dots != NULL;
    if (!dots) {
        if (set_u64(value, spec, err))
            return -1;
        value->last = value->u64;
        return 0;
    }
    if (len < sizeof(first))
        memcpy(first, value->text, len);
    if (text_to_u64(first, &value->u64) &&
        text_to_u64(dots + 2, &value->last) && is_within(value->u64, spec) &&
        is_within(value->last, spec) && value->u64 <= value->last)
        return 0;
    return err_set(err, ERR_USAGE,
                   "option '--%s' takes a range of whole numbers from %.0f to "
                   "%.0f, the smaller one first, not '%s'",
                   spec->name, spec->min, spec->max, value->text);
}

static int set_double(struct option_value *value,
                      const struct option_spec *spec, struct err *err)
{
    if (text_to_double(value->text, &value->number) &&
        value->number >= spec->min && value->number <= spec->max)
        return 0;
    return err_set(err, ERR_USAGE,
                   "option '--%s' takes a number from %g to %g, not '%s'",
                   spec->name, spec->min, spec->max, value->text);
}

/* Parses value->text by the option's type. */
static int set_value(struct option_value *value, const struct option_spec *spec,
                     struct err *err)
{
    switch (spec->type) {
    case OPTION_U64:
        return set_u64(value, spec, err);
    case OPTION_RANGE:
        return set_range(value, spec, err);
    case OPTION_DOUBLE:
        return set_double(value, spec, err);
    case OPTION_BYTES:
        if (text_to_bytes(value->text, &value->u64))
            return 0;
        return err_set(err, ERR_USAGE,
                       "option '--%s' takes a size such as 80GiB, not '%s'",
                       spec->name, value->text);
    case OPTION_CHOICE:
        if (is_choice(spec->choices, value->text))
            return 0;
        return err_set(err, ERR_USAGE, "option '--%s' is one of %s, not '%s'",
                       spec->name, spec->choices, value->text);
    case OPTION_STRING:
    case OPTION_OUTPUT:
    case OPTION_UPDATE:
    case OPTION_DATABASE:
        if (*value->text)
            return 0;
        return err_set(err, ERR_USAGE, "option '--%s' is given an empty %s",
                       spec->name, spec->argument);
    case OPTION_FLAG:
        return 0;
    }
    return 0;
}

/* getopt_long's tables; option i has value FIRST_LONG + i, its letter its own
 * code, so that both lead to the same slot. */
enum { FIRST_LONG = 256, HELP = 1 << 20 };

static void make_getopt_tables(const struct command *command, size_t n,
                               struct option *longs, char *shorts)
{
    *shorts++ = ':';
    for (size_t i = 0; i < n; i++) {
        const struct option_spec *spec = &command->options[i];
        int takes = spec->type != OPTION_FLAG;

        longs[i] = (struct option){
            .name = spec->name,
            .has_arg = takes ? required_argument : no_argument,
            .val = FIRST_LONG + (int)i,
        };
        if (spec->letter) {
            *shorts++ = spec->letter;
            if (takes)
                *shorts++ = ':';
        }
    }
    longs[n] = (struct option){.name = "help", .val = HELP};
    *shorts++ = 'h';
    *shorts = '\0';
}

/* The option that getopt's answer names, or NULL. */
static const struct option_spec *find_spec(const struct command *command,
                                           size_t n, int code)
{
    if (code >= FIRST_LONG && (size_t)(code - FIRST_LONG) < n)
        return &command->options[code - FIRST_LONG];
    for (size_t i = 0; i < n; i++)
        if (command->options[i].letter && command->options[i].letter == code)
            return &command->options[i];
    return NULL;
}

static int usage_error(const struct cli *cli, int code, char **argv,
                       struct err *err)
{
    const struct option_spec *spec =
        find_spec(cli->command, count_options(cli->command), optopt);
    const char *word = argv[optind - 1];

    if (code == ':' && spec)
        return err_set(err, ERR_USAGE, "option '--%s' needs a value: %s",
                       spec->name, spec->argument);
    if (optopt && optopt < FIRST_LONG)
        return err_set(err, ERR_USAGE, "'neuroshard %s' has no option '-%c'",
                       cli->command->name, optopt);
    if (spec)
        return err_set(err, ERR_USAGE, "option '--%s' takes no value",
                       spec->name);
    return err_set(err, ERR_USAGE,
                   "'neuroshard %s' has no option '%s', or several that "
                   "begin so",
                   cli->command->name, word);
}

static int parse_options(struct cli *cli, int argc, char **argv,
                         struct err *err)
{
    size_t n = count_options(cli->command);
    struct option *longs = ARENA_NEW(cli->arena, struct option, n + 2);
    char *shorts = ARENA_NEW(cli->arena, char, 2 * n + 4);
    int code;

    make_getopt_tables(cli->command, n, longs, shorts);
    optind = 0;
    opterr = 0;
    while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const struct option_spec *spec = find_spec(cli->command, n, code);
        struct option_value *value;

        if (code == HELP || code == 'h') {
            cli->wants_help = true;
            continue;
        }
        if (!spec)
            return usage_error(cli, code, argv, err);
        value = &cli->values[spec - cli->command->options];
        value->given = true;
        value->text = optarg;
        if (set_value(value, spec, err))
            return -1;
    }
    cli->args = argv + optind;
    cli->n_args = (size_t)(argc - optind);
    return 0;
}

static int set_defaults(struct cli *cli, struct err *err)
{
    for (size_t i = 0; cli->command->options[i].name; i++) {
        const struct option_spec *spec = &cli->command->options[i];

        cli->values[i].text = spec->default_value;
        if (spec->default_value && set_value(&cli->values[i], spec, err))
            return -1;
    }
    return 0;
}

/* The files that the options write, before anything is read. */
static int claim_files(const struct cli *cli, struct err *err)
{
    for (size_t i = 0; cli->command->options[i].name; i++) {
        enum option_type type = cli->command->options[i].type;
        unsigned uses = type == OPTION_OUTPUT     ? FILE_WRITE
                        : type == OPTION_UPDATE   ? FILE_READ | FILE_WRITE
                        : type == OPTION_DATABASE ? FILE_DATABASE
                                                  : 0;

        if (uses && cli->values[i].text &&
            file_claim(cli->values[i].text, uses, err))
            return err_prefix(err, "option '--%s'",
                              cli->command->options[i].name);
    }
    return 0;
}

int cli_parse(struct cli **out, const struct command *command, int argc,
              char **argv, struct arena *arena, struct err *err)
{
    struct cli *cli = ARENA_NEW(arena, struct cli, 1);

    cli->command = command;
    cli->arena = arena;
    cli->values =
        ARENA_NEW(arena, struct option_value, count_options(command) + 1);
    if (set_defaults(cli, err) || parse_options(cli, argc, argv, err))
        return -1;
    *out = cli;
    if (cli->wants_help)
        return 0;
    if (cli->n_args < command->min_args || cli->n_args > command->max_args)
        return err_set(err, ERR_USAGE, "usage: neuroshard %s %s", command->name,
                       command->synopsis);
    return claim_files(cli, err);
}

bool cli_wants_help(const struct cli *cli)
{
    return cli->wants_help;
}

void cli_print_help(const struct command *command)
{
    printf("usage: neuroshard %s %s\n\n%s\n\noptions:\n", command->name,
           command->synopsis, command->summary);
    for (const struct option_spec *spec = command->options; spec->name;
         spec++) {
        char left[64];

        snprintf(left, sizeof(left), "%s%c%s--%s%s%s",
                 spec->letter ? "-" : "   ", spec->letter ? spec->letter : ' ',
                 spec->letter ? ", " : "", spec->name,
                 spec->argument ? " " : "",
                 spec->argument ? spec->argument : "");
        printf("  %-30s %s", left, spec->help);
        if (spec->type == OPTION_CHOICE)
            printf(" (%s)", spec->choices);
        if (spec->default_value)
            printf(" [%s]", spec->default_value);
        putchar('\n');
    }
    printf("  -h, --%-24s this text\n", "help");
}

struct arena *cli_arena(struct cli *cli)
{
    return cli->arena;
}

size_t cli_n_args(const struct cli *cli)
{
    return cli->n_args;
}

const char *cli_arg(const struct cli *cli, size_t idx)
{
    assert(idx < cli->n_args);
    return cli->args[idx];
}

static const struct option_value *find_value(const struct cli *cli,
                                             const char *name)
{
    const struct option_spec *spec = cli->command->options;

    while (spec->name && strcmp(spec->name, name))
        spec++;
    assert(spec->name);
    return &cli->values[spec - cli->command->options];
}

bool cli_given(const struct cli *cli, const char *name)
{
    return find_value(cli, name)->given;
}

bool cli_flag(const struct cli *cli, const char *name)
{
    return find_value(cli, name)->given;
}

const char *cli_string(const struct cli *cli, const char *name)
{
    return find_value(cli, name)->text;
}

const char *cli_shown(const struct cli *cli, const char *name)
{
    return text_shown(find_value(cli, name)->text, cli->arena);
}

uint64_t cli_u64(const struct cli *cli, const char *name)
{
    return find_value(cli, name)->u64;
}

bool cli_range(const struct cli *cli, const char *name, uint64_t *first,
               uint64_t *last)
{
    const struct option_value *value = find_value(cli, name);

    *first = value->u64;
    *last = value->is_range ? value->last : value->u64;
    return value->is_range;
}

double cli_double(const struct cli *cli, const char *name)
{
    return find_value(cli, name)->number;
}

uint64_t cli_bytes(const struct cli *cli, const char *name)
{
    return find_value(cli, name)->u64;
}

void cli_print_report(struct buf *report)
{
    fwrite(report->data, 1, report->len, stdout);
    buf_release(report);
}

void cli_print_json(json_t *root)
{
    char *text = json_to_text(root);

    fputs(text, stdout);
    mem_free(text);
    json_decref(root);
}

void cli_progress(void *progress, uint64_t done, uint64_t total)
{
    (void)total;
    progress_update(progress, done);
}

void cli_warn(void *ctx, const char *sentence)
{
    struct arena arena;

    (void)ctx;
    arena_init(&arena);
    fprintf(stderr, "neuroshard: warning: %s\n", text_shown(sentence, &arena));
    arena_release(&arena);
}
