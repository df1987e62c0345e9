/* SPDX-License-Identifier: MIT */
#include "io/shell_script.h"

#include <string.h>

bool shell_is_known(const char *word)
{
    return !strchr(word, SHELL_UNKNOWN);
}

const char *shell_shown(const char *word, struct arena *arena)
{
    char *copy = arena_strdup(arena, word), *out = copy;

    for (const char *p = word; *p; p++)
        if (*p != SHELL_UNKNOWN && *p != SHELL_KNOWN)
            *out++ = *p;
    *out = '\0';
    return copy;
}
