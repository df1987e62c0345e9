/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_HOSTILE_H
#define NEUROSHARD_TESTS_HOSTILE_H

/*
 * Texts that no terminal, script or message may see as they are, put into the
 * files that the readers take.
 */

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

/* Clears a screen, forges a line, sets a colour by a C1 control, turns the
 * direction of writing; as JSON. */
#define HOSTILE_JSON "\\u001b[2J\\nforged: line\\u009b31m\\u202e$(x)`x`'"

/* The document with that in front of its idx-th string, names of members
 * counted too; NULL where it has no such string. */
__attribute__((unused)) static const char *
hostile_json(const char *json, size_t idx, struct arena *arena)
{
    bool is_open = false;

    for (const char *at = json; *at; at++) {
        if (is_open && *at == '\\') {
            at++;
            continue;
        }
        if (*at != '"')
            continue;
        is_open = !is_open;
        if (is_open && !idx--)
            return arena_printf(arena, "%.*s" HOSTILE_JSON "%s",
                                (int)(at + 1 - json), json, at + 1);
    }
    return NULL;
}

/* Lines of printable text. */
__attribute__((unused)) static bool is_clean(const char *text)
{
    struct arena arena = {0};
    char *copy = arena_strdup(&arena, text);
    bool clean;

    for (char *at = copy; *at; at++)
        if (*at == '\n')
            *at = ' ';
    clean = text_is_printable(copy);
    arena_release(&arena);
    return clean;
}

#endif
