/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CLI_HELP_H
#define NEUROSHARD_BASE_CLI_HELP_H

#include "base/mem.h"
#include "base/option.h"

#include <stdbool.h>
#include <stddef.h>

/* The text of --help. */

/* Returns true if two options have the same heading; NULL is no heading. */
bool cli_is_same_heading(const char *a, const char *b);
/* Returns an option's help with its choices and its default, such as "the seed
 * (one, two) [one]". The blanks after the commas let a line break between two
 * choices. The text is in the arena. */
const char *cli_help_text(const struct option_spec *spec, struct arena *arena);
/* Appends the n options with their help, each after its heading if that differs
 * from the heading of the option before. */
void cli_help_options(const struct option_spec *const *specs,
                      const char *const *headings, size_t n, size_t n_columns,
                      struct arena *arena, struct buf *out);

#endif
