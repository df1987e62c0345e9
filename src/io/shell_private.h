/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SHELL_PRIVATE_H
#define NEUROSHARD_IO_SHELL_PRIVATE_H

#include "io/shell.h"

/* Declarations that the files of the shell reader share. The first part is
 * about variables and expansion, the second part about commands. */

/* Marker in the value of a variable: precedes each element of an array. */
#define SHELL_ELEMENT '\3'
/* Marker in a word during its expansion: separates two fields. */
#define SHELL_FIELD '\4'
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

/* Expands the word at shell->pos and appends the result to `out`.
 *   shell->pos  moves from the word's first character behind its last one
 *   is_all      true: the word extends to the end of the text; false: the word
 *               ends at a blank or an operator
 *   splits      true: unquoted expansions are split into fields
 *   *is_quoted  true: the word has quotes, so it counts even if it is empty */
int shell_expand(struct shell *shell, struct buf *out, bool splits, bool is_all,
                 bool *is_quoted, struct err *err) MUST_CHECK;
/* Expands a whole text as one word, as shell_expand does, and appends the
 * result to `out`. */
int shell_expand_text(struct shell *shell, struct buf *out, const char *text,
                      struct err *err) MUST_CHECK;

/* Returns the position behind the bracket that closes the bracket at `pos`, or
 * NULL if no bracket closes it. Brackets in quotes do not count. */
const char *shell_close(const char *pos);

/* True if two values of variables are equal, or if both are NULL. */
bool shell_is_same(const char *a, const char *b);

/* Evaluates an arithmetic expression without '$'. Returns false if the value of
 * the expression is unknown. */
bool shell_calculate(struct shell *shell, const char *text, int64_t *out);

/* Sets an ERR_INPUT error with the message "source:line: sentence". Returns
 * -1. */
int shell_error(const struct shell *shell, size_t line, struct err *err,
                const char *sentence);

/* --- commands --- */

#define SHELL_MAX_FRAMES 64
#define SHELL_MAX_HERE 8
#define SHELL_OPERATORS " \t\r\n;&|<>()"

enum frame_kind {
    FRAME_IF,
    FRAME_LOOP,
    FRAME_CASE,
    FRAME_FUNCTION,
    FRAME_GROUP,
    FRAME_SUBSHELL
};
/* A compound command, such as `if`, whose end has not been read yet. The reader
 * does not know whether its commands run. */
struct shell_frame {
    enum frame_kind kind;
    size_t line;
    /* values of the variables before the command; owned */
    struct shell_variables before;
    /* variables, merged over the branches read so far; owned */
    struct shell_variables merged;
    bool has_branch, is_exhaustive;
};

struct shell_reader {
    struct shell shell;
    struct shell_frame frames[SHELL_MAX_FRAMES];
    size_t n_frames;
    /* end words of the here-documents that begin on the current line */
    const char *here[SHELL_MAX_HERE];
    size_t n_here, n_loops;
    bool is_maybe;    /* true: the current command follows && or || */
    bool is_function; /* true: the next bracket opens a function's body */
    bool is_shaky;    /* true: some skipped lines may have been branches */
    /* nesting depth of texts that are run by commands such as `eval` */
    unsigned depth;
};

struct shell_words {
    struct shell_word *list; /* owned */
    size_t n, cap;
};

void shell_step(struct shell *shell, size_t n);
/* Skips blanks, and line ends that follow a backslash. */
void shell_skip_blanks(struct shell *shell);
/* Reads commands up to the end of the text. */
int shell_read_commands(struct shell_reader *reader,
                        struct err *err) MUST_CHECK;
/* Reads the commands of another text, as `eval` runs them. */
int shell_read_text(struct shell_reader *reader, const char *text, size_t line,
                    struct err *err) MUST_CHECK;
/* Reads one command that does not begin with a keyword. */
int shell_read_command(struct shell_reader *reader, struct err *err) MUST_CHECK;
/* Reads words up to the end of a command. is_declared is true if the command is
 * `export` or another command whose words may be assignments. */
int shell_read_words(struct shell_reader *reader, struct shell_words *words,
                     bool is_declared, struct err *err) MUST_CHECK;
/* Reads a redirection, which begins at '<' or '>'. */
int shell_read_redirection(struct shell_reader *reader,
                           struct err *err) MUST_CHECK;
/* Reads the bodies of the here-documents of the previous line. */
int shell_read_here(struct shell_reader *reader, struct err *err) MUST_CHECK;

#endif
