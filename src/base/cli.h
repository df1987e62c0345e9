/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CLI_H
#define NEUROSHARD_BASE_CLI_H

#include "base/json.h"
#include "base/mem.h"

/*
 * A command line and its answer. A command is a name, a table of options and a
 * function. Parsing, --help, range errors and the check against the man page
 * all come from the table. What it answers is printed in the end, as a report
 * or, by --json, as one document.
 */

enum option_type {
    OPTION_FLAG,
    OPTION_STRING,
    OPTION_OUTPUT,   /* a file that is written, and not read */
    OPTION_RESULT,   /* the same, of which --json tells: no standard output */
    OPTION_PLAN,     /* the same, of the plan that --json prints */
    OPTION_UPDATE,   /* a file that is read and replaced */
    OPTION_DATABASE, /* an SQLite file */
    OPTION_U64,
    OPTION_RANGE, /* a whole number, or two: "4", "4..16" */
    OPTION_DOUBLE,
    OPTION_PERCENT, /* "1%", of which the value is 0.01 */
    OPTION_BYTES,   /* a size: "80GiB" */
    OPTION_CHOICE   /* one of choices, separated by '|' */
};

struct option_spec {
    const char *name; /* long name without dashes */
    char letter;      /* short form, or 0 */
    enum option_type type;
    const char *argument;      /* "N", "FILE"; NULL for a flag */
    const char *default_value; /* text, parsed like a given one; or NULL */
    double min, max;           /* of numbers, inclusive; of sizes the least */
    const char *choices;       /* CHOICE: "a|b|c", as an enum has them; else
                                  NULL or what --help lists */
    const char *help;          /* one line, with the unit */
};

struct option_value {
    bool given;       /* not by default */
    const char *text; /* as typed, or the default; NULL: neither */
    int choice;       /* CHOICE: which of them, from 0 */
    uint64_t u64;
    uint64_t last; /* RANGE: from u64 to it, which may be the same */
    bool is_range; /* it was written as one */
    double number;
};

#define COMMAND_MAX_GROUPS 8
#define COMMAND_MAX_OPTIONS 64

/* A parsed command line. */
struct cli {
    const struct command *command;
    struct arena *arena; /* of the command, for all that it needs to its end */
    char **args;         /* [n_args], as many as the command takes */
    size_t n_args;
    double start_ms; /* when the command began, by clock_ms */
    /* What follows is for the functions below. Of all groups in turn, then
     * --wide, --json and --help. */
    const struct option_spec *specs[COMMAND_MAX_OPTIONS];
    struct option_value values[COMMAND_MAX_OPTIONS];
    size_t n_specs;
};

struct command {
    const char *name;     /* "tables", or two words: "tables import" */
    const char *synopsis; /* "TABLES --gpus N [options]" */
    const char *summary;  /* one line */
    /* Groups, of which commands share some; NULL after the last. Each group
     * ends with a NULL name. */
    const struct option_spec *options[COMMAND_MAX_GROUPS + 1];
    const char *needs[3]; /* options that must be given, NULL after the last */
    bool has_wide;        /* --wide */
    bool ends_at_once;    /* an interrupt ends it wherever it is, until it has
                             something to keep (base/interrupt.h) */
    unsigned n_args[2];   /* of files: at least, and at most */
    /* 0, -1 with the err, or the exit status of a success that has one of its
     * own. */
    int (*run)(struct cli *cli, struct err *err);
};

/* Parses argv after the command's name. ERR_USAGE names the option and what
 * it takes. With --help it prints the options, and *out is NULL. */
int cli_parse(struct cli **out, const struct command *command, int argc,
              char **argv, struct arena *arena, struct err *err) MUST_CHECK;

/* The group of '--verbose', of commands that show progress. */
extern const struct option_spec progress_options[];

/* Fills specs, of the command. */
void cli_list_options(struct cli *cli);

/* Values by option name; asking for an option that the command's table lacks
 * is a programmer's mistake (assert). */
const struct option_value *cli_value(const struct cli *cli, const char *name);
bool cli_given(const struct cli *cli, const char *name);
const char *cli_string(const struct cli *cli, const char *name); /* or NULL */
/* The same as it may be printed (text_shown); not NULL. */
const char *cli_shown(const struct cli *cli, const char *name);
/* A whole number or a size; 0 where there is neither a given nor a default
 * one, like the number below. */
uint64_t cli_u64(const struct cli *cli, const char *name);
double cli_double(const struct cli *cli, const char *name);
/* Which of the choices; 0 where there is no value. */
int cli_choice(const struct cli *cli, const char *name);

/* Whether --json asks for standard output to be one JSON document, also where
 * the command fails, and how many columns it may have where it is none. */
void cli_answer_as(bool is_json, size_t n_columns);
/* Columns that a report may have: those of the terminal, else 80; with --wide
 * there is no end. */
size_t cli_columns(const struct cli *cli);
/* A command says what it has to say as a report and as a JSON document, of
 * which --json chooses one; the other one is dropped. */
/* The report, to which a command appends; printed in the end, in lines of so
 * many columns. On a terminal other than mpirun's labels are bold, but where
 * NO_COLOR is set. */
struct buf *cli_text(void);
#define cli_printf(...) buf_printf(cli_text(), __VA_ARGS__)
/* Prints what there is of it by now. */
void cli_print_report(void);
/* Keeps a document that is to be printed in the end. */
void cli_print_json(json_t *root);
/* Prints a document that goes out as it is, such as a plan. */
void cli_print_text(const char *text);
void cli_print_document(json_t *root);
/* Has an interrupt end the command at once, with a sentence or a document. */
void cli_end_at_once(void);
/* Prints the report and the document that were kept. Of a failure (else NULL)
 * it gets a member "error", or there is nothing but that, unless a document
 * went out as it is.
 */
void cli_end_answer(const struct err *err);
/* Prints a message on stderr; on a terminal in lines of its width, elsewhere in
 * one line. */
void cli_say(const char *sentence);
/* Prints a warning on stderr, the same sentence only once; fits where a reader
 * asks for a function to call (ctx is not used). */
void cli_warn(void *ctx, const char *sentence);

#endif
