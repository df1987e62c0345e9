/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CLI_H
#define NEUROSHARD_BASE_CLI_H

#include "base/json.h"
#include "base/mem.h"
#include "base/option.h"

/*
 * A command line. A command is a name, a table of options and a function.
 * Parsing, --help, range errors and the check against the man page all come
 * from the table of options. base/cli_answer.h has the answer of a command.
 */

struct option_value {
    bool given; /* whether the user typed the option; if not, the value is the
                   default */
    const char *text; /* the value as the user typed it, or the default; NULL if
                         the option has no value */
    int choice;       /* OPTION_CHOICE: index of the choice, from 0 */
    uint64_t u64;
    /* OPTION_RANGE: the numbers, rising, in the arena. `u64` is the first. */
    struct option_number {
        uint64_t n;
        bool is_listed; /* the user typed this number, not only a range of it */
    } * numbers;
    size_t n_numbers;
    bool is_range; /* OPTION_RANGE: the user typed more than one number */
    double number;
    /* OPTION_STRINGS: the values in the order in which they were given, in the
     * arena */
    const char **texts;
    size_t n_texts;
};

#define COMMAND_MAX_GROUPS 12
#define COMMAND_MAX_OPTIONS 64

/* A parsed command line. */
struct cli {
    const struct command *command;
    /* Memory of the command, released when the command ends. */
    struct arena *arena;
    /* [n_args] file arguments, as many as the command takes */
    char **args;
    size_t n_args;
    double start_ms; /* time at which the command started, in ms of clock_ms */
    /* The members below are private to the functions of this header. They hold
     * the options of the command in the order of --help, each with its heading
     * or NULL. */
    const struct option_spec *specs[COMMAND_MAX_OPTIONS];
    const char *headings[COMMAND_MAX_OPTIONS];
    struct option_value values[COMMAND_MAX_OPTIONS];
    size_t n_specs;
};

struct command {
    const char *name;     /* "tables", or two words: "tables import" */
    const char *synopsis; /* "TABLES --gpus N [options]" */
    const char *summary;  /* purpose of the command in one line */
    /* one command line with usual options, which --help prints and the manual
     * page contains; or NULL */
    const char *example;
    /* Groups of options; NULL after the last. A group may be shared by several
     * commands. Each group ends with an option whose name is NULL. */
    const struct option_spec *options[COMMAND_MAX_GROUPS + 1];
    const char *needs[3]; /* required options, NULL after the last */
    bool has_wide;        /* the command has the option --wide */
    /* An interrupt ends the command immediately, until the command has
     * something to keep (base/interrupt.h). */
    bool ends_at_once;
    unsigned n_args[2]; /* fewest and most file arguments */
    /* Runs the command. Returns 0 on success and -1 with the err on failure. A
     * command that has a success status of its own returns this exit status
     * instead of 0. */
    int (*run)(struct cli *cli, struct err *err);
};

/* Parses the words of argv that follow the command's name. Fails with
 * ERR_USAGE; the message names the option and the values that it accepts. If
 * argv contains --help, prints the options and sets *out to NULL. */
int cli_parse(struct cli **out, const struct command *command, int argc,
              char **argv, struct arena *arena, struct err *err) MUST_CHECK;

/* Heading of the options that choose the output of a command. */
#define OUTPUT_HEADING "output"

/* Option group with '--verbose', for commands that show progress. */
extern const struct option_spec progress_options[];

/* Fills cli->specs and cli->headings from the option groups of
 * cli->command. */
void cli_list_options(struct cli *cli);

/* Returns the value of the option with this name. It is a programming error
 * (assert) to ask for an option that the command's table lacks. */
const struct option_value *cli_value(const struct cli *cli, const char *name);
bool cli_given(const struct cli *cli, const char *name);
/* Returns the option's value as text; NULL if the option was not given and has
 * no default. */
const char *cli_string(const struct cli *cli, const char *name);
/* Returns the option's value as text, in a form that is safe to print
 * (text_shown); never NULL. */
const char *cli_shown(const struct cli *cli, const char *name);
/* Returns the value of an option whose type is a whole number or a size. Like
 * cli_double, it returns 0 if the option was not given and has no default. */
uint64_t cli_u64(const struct cli *cli, const char *name);
double cli_double(const struct cli *cli, const char *name);
/* Returns the index of the chosen word in the option's list of choices; 0 if
 * the option has no value. */
int cli_choice(const struct cli *cli, const char *name);

/* Returns the width of the report in columns: the width of the terminal, or 80
 * if there is no terminal. With --wide the width is unlimited. */
size_t cli_columns(const struct cli *cli);

#endif
