/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_HOSTILE_H
#define NEUROSHARD_TESTS_HOSTILE_H

/*
 * Inserts hostile texts into the files that readers take. Terminals, scripts
 * and messages must never receive these texts unescaped.
 */

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/printable.h"

/* A JSON string body that clears the screen, forges a line, sets a colour by a
 * C1 control character and reverses the writing direction. */
#define HOSTILE_JSON "\\u001b[2J\\nforged: line\\u009b31m\\u202e$(x)`x`'"

/* Returns the document with the hostile text in front of its idx-th string
 * (member names count too). Returns NULL if there is no such string. */
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

/* Returns true if all lines of the text are printable. */
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
