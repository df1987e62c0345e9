/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SHELL_COMMANDS_H
#define NEUROSHARD_IO_SHELL_COMMANDS_H

#include "io/shell_state.h"

/*
 * Reader of simple commands: their assignments, words, redirections and
 * here-documents.
 */

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
