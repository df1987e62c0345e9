/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_CLI_PLAN_LINE_H
#define NEUROSHARD_TESTS_UNIT_CLI_PLAN_LINE_H

/* Parses the command line "plan LINE" of at most 23 words, separated by blanks.
 * The result lives in the arena. Returns NULL and sets err if the line is
 * refused. */

#include "base/cli.h"
#include "cli/command.h"
#include "tests/tap.h"

#include <string.h>

static struct cli *plan_line(const char *line, struct arena *arena,
                             struct err *err)
{
    char *words = arena_printf(arena, "plan %s", line);
    char *argv[24] = {NULL};
    struct cli *cli = NULL;
    int argc = 0;

    for (char *word; (word = strsep(&words, " ")) && argc < 23;)
        if (*word)
            argv[argc++] = word;
    *err = (struct err){0};
    return cli_parse(&cli, &command_plan, argc, argv, arena, err) ? NULL : cli;
}

#endif
