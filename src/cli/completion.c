/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "cli/command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* What begins like the word that is being typed. */
static void offer(const char *word, const char *candidate, size_t len,
                  const char *help)
{
    if (len >= strlen(word) && !strncmp(candidate, word, strlen(word)))
        printf("%.*s\t%s\n", (int)len, candidate, help);
}

/* "a|b:NAME" or "a, b:NAME" as "a" and "b:": what is in capitals or brackets is
 * for the user. */
static void offer_choices(const char *word, const char *choices)
{
    while (*choices) {
        const size_t len = strcspn(choices, "|,");
        const size_t n_said = strcspn(choices, "[ABCDEFGHIJKLMNOPQRSTUVWXYZ");

        if (islower((unsigned char)*choices))
            offer(word, choices, n_said < len ? n_said : len, "");
        choices += len;
        choices += strspn(choices, "|, ");
    }
}

static const struct option_spec *find_spec(const struct cli *cli,
                                           const char *word)
{
    for (size_t i = 0; i < cli->n_specs; i++) {
        const struct option_spec *spec = cli->specs[i];

        if (!strncmp(word, "--", 2) ? !strcmp(word + 2, spec->name)
                                    : spec->letter && word[0] == '-' &&
                                          word[1] == spec->letter && !word[2])
            return spec;
    }
    return NULL;
}

/* What may follow a command's name: the last of the words is the one that is
 * being typed. The shells give "--NAME=VALUE" as two words. */
static void offer_arguments(const struct cli *cli, size_t n, char **words)
{
    const char *word = words[n - 1];
    const struct option_spec *spec =
        n > 1 ? find_spec(cli, words[n - 2]) : NULL;

    if (spec && spec->type != OPTION_FLAG) {
        const char *const *gpu = file_list_data("gpus", ".json", cli->arena);

        offer_choices(word, spec->choices ? spec->choices : "");
        for (; !strcmp(spec->name, "gpu") && *gpu; gpu++)
            offer(word, *gpu, strlen(*gpu), "");
        return;
    }
    for (size_t i = 0; *word == '-' && i < cli->n_specs; i++)
        offer(word, arena_printf(cli->arena, "--%s", cli->specs[i]->name),
              strlen(cli->specs[i]->name) + 2, cli->specs[i]->help);
}

/* The first words of commands, each once, or those behind one of them. */
static void offer_commands(const char *word, const char *first,
                           const struct command *const *commands, size_t n)
{
    const char *last = "";

    for (size_t i = 0; i < n; i++) {
        const char *name = commands[i]->name;
        const size_t len = strcspn(name, " ");

        if (first && !strncmp(name, first, len) && !first[len] && name[len])
            offer(word, name + len + 1, strlen(name + len + 1),
                  commands[i]->summary);
        if (!first && strncmp(name, last, len) != 0)
            offer(word, name, len, name[len] ? "" : commands[i]->summary);
        last = name;
    }
}

void cli_complete(const struct command *const *commands, size_t n_commands,
                  size_t n, char **words, struct arena *arena)
{
    const bool is_help = n > 1 && !strcmp(words[0], "help");
    const char *word = n ? words[n - 1] : "";
    struct cli cli = {.arena = arena};

    n -= is_help;
    words += is_help;
    if (n < 2) {
        offer_commands(word, NULL, commands, n_commands);
        return;
    }
    if (n == 2)
        offer_commands(word, words[0], commands, n_commands);
    for (size_t i = 0; i < n_commands; i++)
        if (!strcmp(commands[i]->name, words[0]) ||
            (n > 2 &&
             !strcmp(commands[i]->name,
                     arena_printf(arena, "%s %s", words[0], words[1]))))
            cli.command = commands[i];
    if (!cli.command || is_help)
        return;
    cli_list_options(&cli);
    offer_arguments(&cli, n - 1, words + 1);
}
