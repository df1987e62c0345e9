/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_OPTION_H
#define NEUROSHARD_BASE_OPTION_H

/* Description of an option of a command line (base/cli.h). */

enum option_type {
    OPTION_FLAG,
    OPTION_STRING,
    OPTION_STRINGS, /* a text; the option may be repeated */
    OPTION_OUTPUT,  /* a file that is written and not read */
    /* A file that is written and not read. --json prints a summary of the file,
     * so the file must not be standard output. */
    OPTION_RESULT,
    /* A file that is written and not read. It is the plan that --json
     * prints. */
    OPTION_PLAN,
    OPTION_UPDATE,   /* a file that is read and replaced */
    OPTION_DATABASE, /* an SQLite file */
    OPTION_U64,
    /* whole numbers: "4", "4..16", "8..64:8", "8,16,32" */
    OPTION_RANGE,
    OPTION_DOUBLE,
    OPTION_PERCENT, /* a percentage: "1%" has the value 0.01 */
    OPTION_BYTES,   /* a size: "80GiB" */
    OPTION_CHOICE,  /* one of the choices, separated by '|' */
    OPTION_HEADING  /* no option; OPTIONS_HEADED makes it */
};

struct option_spec {
    const char *name; /* long name without dashes */
    char letter;      /* short form, or 0 */
    enum option_type type;
    const char *argument;      /* "N", "FILE"; NULL for a flag */
    const char *default_value; /* default as the user would type it, or NULL */
    /* inclusive limits of a number; a size has only a minimum */
    double min, max;
    /* Choices of an OPTION_CHOICE, such as "a|b|c", in the order of the enum.
     * For other types of options NULL, or a list of values that --help
     * prints. */
    const char *choices;
    const char *help; /* help text in one line, with the unit of the value */
};

/* Entry of a table of options that heads the options after it, up to the next
 * heading or the end of the table. --help lists options with the same heading
 * together, whatever their table, in the order in which the headings first
 * appear. The manual page of the command has a section "Options: HEADING" for
 * each heading. Options without a heading are listed first. */
#define OPTIONS_HEADED(heading)                                    \
    {                                                              \
        (heading), 0, OPTION_HEADING, NULL, NULL, 0, 0, NULL, NULL \
    }

#endif
