/* SPDX-License-Identifier: MIT */
#include "io/shell_state.h"

#include <string.h>

#define MAX_VARIABLES 1024

void shell_step(struct shell *shell, size_t n)
{
    for (; n && *shell->pos; n--)
        shell->line += *shell->pos++ == '\n';
}

void shell_skip_blanks(struct shell *shell)
{
    for (;;) {
        shell_step(shell, strspn(shell->pos, " \t\r"));
        if (shell->pos[0] != '\\' ||
            (shell->pos[1] != '\n' &&
             (shell->pos[1] != '\r' || shell->pos[2] != '\n')))
            return;
        shell_step(shell, shell->pos[1] == '\n' ? 2 : 3);
    }
}

int shell_error(const struct shell *shell, size_t line, struct err *err,
                const char *sentence)
{
    return err_input(err, "%s:%zu: %s", shell->script->source, line, sentence);
}

struct shell_variable *shell_find(struct shell *shell, const char *name)
{
    struct shell_variables *variables = &shell->variables;

    for (size_t i = 0; i < variables->n; i++)
        if (!strcmp(variables->list[i].name, name))
            return &variables->list[i];
    return NULL;
}

void shell_set(struct shell *shell, const char *name, const char *value)
{
    struct shell_variables *variables = &shell->variables;
    struct arena *arena = shell->script->arena;
    struct shell_variable *variable = shell_find(shell, name);

    if (!variable && variables->n >= MAX_VARIABLES)
        variables->is_open = true;
    if (!variable && variables->n < MAX_VARIABLES) {
        variables->list = mem_room(variables->list, variables->n,
                                   &variables->cap, sizeof(*variables->list));
        variable = &variables->list[variables->n++];
        *variable = (struct shell_variable){.name = arena_strdup(arena, name)};
    }
    if (!variable)
        return;
    if (!value || variable->is_shaky)
        value =
            arena_printf(arena, "%c$%s%c", SHELL_UNKNOWN, name, SHELL_KNOWN);
    variable->value = value;
}

size_t shell_name_length(const char *text)
{
    return *text && strchr(SHELL_NAME_START, *text) ? strspn(text, SHELL_NAME)
                                                    : 0;
}

void shell_forget(struct shell *shell, const char *pos, const char *end)
{
    bool is_inside = false;

    while (pos < end) {
        const size_t len = is_inside ? 0 : shell_name_length(pos);
        const char *next = pos + len;

        is_inside = *pos && strchr(SHELL_NAME, *pos);
        if (!len) {
            pos++;
            continue;
        }
        if ((next[0] == '=' && next[1] != '=') ||
            (next[0] == '+' && (next[1] == '=' || next[1] == '+')) ||
            (next[0] == '-' && next[1] == '-') || next[0] == '[')
            shell_set(shell, arena_strndup(shell->script->arena, pos, len),
                      NULL);
        pos = next;
    }
}

bool shell_is_same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}
