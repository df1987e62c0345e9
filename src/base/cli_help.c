/* SPDX-License-Identifier: MIT */
#include "base/cli_help.h"

#include "base/text.h"

#include <stdio.h>
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

static void print_option_help(const struct cli *cli,
                              const struct option_spec *spec, struct buf *out)
{
    const char letter[] = {'-', spec->letter, ',', '\0'};
    const char *name = arena_printf(cli->arena, "--%s %s", spec->name,
                                    spec->argument ? spec->argument : "");

    buf_printf(out, "  %3s %-*s ", spec->letter ? letter : "", HELP_INDENT - 7,
               name);
    text_wrap(out, cli_help_text(spec, cli->arena), HELP_INDENT, HELP_INDENT,
              cli_columns(cli));
    buf_add(out, "\n", 1);
}

void cli_print_help(const struct cli *cli)
{
    const struct command *command = cli->command;
    const size_t n_columns = cli_columns(cli);
    struct buf out = {0};

    text_wrap(&out,
              arena_printf(cli->arena, "usage: neuroshard %s %s", command->name,
                           command->synopsis),
              0, strlen("usage: "), n_columns);
    buf_printf(&out, "\n\n%s\n", command->summary);
    for (size_t i = 0; i < cli->n_specs; i++) {
        const char *heading = cli->headings[i];

        if (!i || !cli_is_same_heading(cli->headings[i - 1], heading))
            buf_printf(&out, "\n%s:\n", heading ? heading : "options");
        print_option_help(cli, cli->specs[i], &out);
    }
    if (command->example)
        buf_printf(&out, "\nexample:\n  %s\n", command->example);
    fputs(out.data, stdout);
    buf_release(&out);
}
