/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CLI_HELP_H
#define NEUROSHARD_BASE_CLI_HELP_H

#include "base/cli.h"

/* The text of --help. */

/* Returns true if two options have the same heading; NULL is no heading. */
bool cli_is_same_heading(const char *a, const char *b);
/* Returns an option's help with its choices and its default, such as "the seed
 * (one, two) [one]". The blanks after the commas let a line break between two
 * choices. The text is in the arena. */
const char *cli_help_text(const struct option_spec *spec, struct arena *arena);
/* Prints the usage, the options under their headings and the example of the
 * command on standard output. */
void cli_print_help(const struct cli *cli);

#endif
