/* SPDX-License-Identifier: MIT */
#include "base/cli_help.h"

#include "base/text.h"

#include <string.h>

/* Column in which --help begins to print the help of an option. */
#define HELP_INDENT 33

bool cli_is_same_heading(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

const char *cli_help_text(const struct option_spec *spec, struct arena *arena)
{
    struct buf buf = {0};
    const char *text;

    buf_printf(&buf, "%s", spec->help);
    if (spec->choices)
        buf_printf(&buf, " (");
    for (const char *pos = spec->choices; pos && *pos; pos++)
        buf_printf(&buf, *pos == '|' ? ", " : "%c", *pos);
    if (spec->choices)
        buf_printf(&buf, ")");
    if (spec->default_value)
        buf_printf(&buf, " [%s]", spec->default_value);
    text = arena_strdup(arena, buf.data);
    buf_release(&buf);
    return text;
}

static void print_option(const struct option_spec *spec, size_t n_columns,
                         struct arena *arena, struct buf *out)
{
    const char letter[] = {'-', spec->letter, ',', '\0'};
    const char *name = arena_printf(arena, "--%s %s", spec->name,
                                    spec->argument ? spec->argument : "");

    buf_printf(out, "  %3s %-*s ", spec->letter ? letter : "", HELP_INDENT - 7,
               name);
    text_wrap(out, cli_help_text(spec, arena), HELP_INDENT, HELP_INDENT,
              n_columns);
    buf_add(out, "\n", 1);
}

void cli_help_options(const struct option_spec *const *specs,
                      const char *const *headings, size_t n, size_t n_columns,
                      struct arena *arena, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (!i || !cli_is_same_heading(headings[i - 1], headings[i]))
            buf_printf(out, "\n%s:\n", headings[i] ? headings[i] : "options");
        print_option(specs[i], n_columns, arena, out);
    }
}
