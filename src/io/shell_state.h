/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SHELL_STATE_H
#define NEUROSHARD_IO_SHELL_STATE_H

#include "io/shell_script.h"

/* State of the reader of a script: its place in the text, and the variables. */

/* Marker in the value of a variable: precedes each element of an array. */
#define SHELL_ELEMENT '\3'
#define SHELL_NAME_START "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define SHELL_NAME SHELL_NAME_START "0123456789"

struct shell_variable {
    const char *name;
    const char *value; /* NULL: not set */
    /* true: a function sets the variable, and each call may change it */
    bool is_shaky;
};

struct shell_variables {
    struct shell_variable *list; /* owned */
    size_t n, cap;
    bool is_open; /* true: another file may have set any variable */
};

struct shell {
    const struct shell_script *script;
    const char *pos; /* unread rest of the text */
    size_t line;     /* line number of `pos` */
    struct shell_variables variables;
    uint64_t n_bytes; /* bytes of text that expansion has produced */
    unsigned depth;   /* nesting depth of expansions */
};

/* Returns the variable that has this name, or NULL if the name is unknown. */
struct shell_variable *shell_find(struct shell *shell, const char *name);
/* Sets a variable. If `value` is NULL, the variable becomes unknown. */
void shell_set(struct shell *shell, const char *name, const char *value);
/* Finds the variables that the text from `pos` to `end` may set, and makes them
 * unknown. */
void shell_forget(struct shell *shell, const char *pos, const char *end);

/* Returns the length of the variable name at the beginning of a text; 0 if the
 * text does not begin with a name. */
size_t shell_name_length(const char *text);

/* True if two values of variables are equal, or if both are NULL. */
bool shell_is_same(const char *a, const char *b);

/* Sets an ERR_INPUT error with the message "source:line: sentence". Returns
 * -1. */
int shell_error(const struct shell *shell, size_t line, struct err *err,
                const char *sentence);

/* Moves shell->pos by n characters, or to the end of the text, and counts the
 * lines. */
void shell_step(struct shell *shell, size_t n);
/* Skips blanks, and line ends that follow a backslash. */
void shell_skip_blanks(struct shell *shell);

#endif
