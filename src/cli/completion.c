/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* "a|b:NAME" or "a, b:NAME" as "a" and "b:": what is in capitals or brackets is
 * for the user. */
static void print_values(const char *key, const char *choices)
{
    printf("%s\t\n", key);
    while (choices && *choices) {
        const size_t len = strcspn(choices, "|,");
        const size_t n_said = strcspn(choices, "[ABCDEFGHIJKLMNOPQRSTUVWXYZ");

        if (isalnum((unsigned char)*choices) && n_said)
            printf("%s\t%.*s\t\n", key, (int)(n_said < len ? n_said : len),
                   choices);
        choices += len;
        choices += strspn(choices, "|, ");
    }
}

static void print_option(const char *command, const struct option_spec *spec,
                         struct arena *arena)
{
    const char *choices = spec->choices;

    printf("%s=\t--%s\t%s\n", command, spec->name, spec->help);
    if (spec->type == OPTION_FLAG)
        return;
    if (!strcmp(spec->name, "gpu"))
        choices =
            text_list(file_list_data("gpus", ".json", arena), ", ", arena);
    print_values(arena_printf(arena, "%s=--%s", command, spec->name), choices);
    if (spec->letter)
        print_values(arena_printf(arena, "%s=-%c", command, spec->letter),
                     choices);
}

void cli_print_words(const struct command *command, const char *before,
                     struct arena *arena)
{
    struct cli cli = {.command = command, .arena = arena};
    const char *name = command->name;
    const size_t len = strcspn(name, " ");

    if (strncmp(name, before, len) != 0)
        printf("\t%.*s\t%s\n", (int)len, name,
               name[len] ? "" : command->summary);
    if (name[len])
        printf("%.*s\t%s\t%s\n", (int)len, name, name + len + 1,
               command->summary);
    cli_list_options(&cli);
    for (size_t i = 0; i < cli.n_specs; i++)
        print_option(name, cli.specs[i], arena);
}
