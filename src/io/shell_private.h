/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SHELL_PRIVATE_H
#define NEUROSHARD_IO_SHELL_PRIVATE_H

#include "io/shell.h"

/* What the files of the shell reader share: variables and expansion. */

/* In values: before each element of an array. */
#define SHELL_ELEMENT '\3'
/* In words that are being read: where one field ends and the next begins. */
#define SHELL_FIELD '\4'
#define SHELL_NAME_START "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define SHELL_NAME SHELL_NAME_START "0123456789"

struct shell_variable {
    const char *name;
    const char *value; /* NULL: not set */
    bool is_shaky;     /* a function sets it, at a time that is not known */
};

struct shell_variables {
    struct shell_variable *list; /* owned */
    size_t n, cap;
    bool is_open; /* a file that is not here may have set any */
};

struct shell {
    const struct shell_script *script;
    const char *at; /* what is not read yet of the text */
    size_t line;    /* of `at` */
    struct shell_variables variables;
    uint64_t n_bytes; /* that expansion has made */
    unsigned depth;   /* of texts in texts */
};

/* The variable, or NULL. */
struct shell_variable *shell_find(struct shell *shell, const char *name);
/* A value of NULL is not known. */
void shell_set(struct shell *shell, const char *name, const char *value);
/* Makes every variable unknown that the text from `at` to `end` may set. */
void shell_forget(struct shell *shell, const char *at, const char *end);

/* Length of the name at the beginning of a text; 0: none. */
size_t shell_name_length(const char *text);

/* Reads one word from shell->at on, up to a blank or an operator, or to the
 * end of the text if `is_all`. Fields of unquoted expansions are separated if
 * `splits`. *is_quoted: an empty word counts. */
int shell_expand(struct shell *shell, struct buf *out, bool splits, bool is_all,
                 bool *is_quoted, struct err *err) MUST_CHECK;
/* A whole text by the same rules, as one word. */
int shell_expand_text(struct shell *shell, struct buf *out, const char *text,
                      struct err *err) MUST_CHECK;

/* Returns the character behind the bracket that closes the one at `at`, or
 * NULL; brackets in quotes do not count. */
const char *shell_close(const char *at);

/* Whether two values are the same, or both NULL. */
bool shell_is_same(const char *a, const char *b);

/* Value of an arithmetic expression without '$'; false: not known. */
bool shell_calculate(struct shell *shell, const char *text, int64_t *out);

/* ERR_INPUT with "source:line: ". */
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
/* What is open: commands that may run, and the variables before them. */
struct shell_frame {
    enum frame_kind kind;
    size_t line;
    struct shell_variables before; /* owned */
    struct shell_variables merged; /* owned; what the branches so far leave */
    bool has_branch, is_exhaustive;
};

struct shell_reader {
    struct shell shell;
    struct shell_frame frames[SHELL_MAX_FRAMES];
    size_t n_frames;
    const char
        *here[SHELL_MAX_HERE]; /* ends of the here-documents of this line */
    size_t n_here, n_loops;
    bool is_maybe;    /* the command follows && or || */
    bool is_function; /* the next bracket opens the body of one */
    bool is_shaky;    /* lines were passed over that may be branches */
    unsigned depth;   /* of texts that commands run */
};

struct shell_words {
    struct shell_word *list; /* owned */
    size_t n, cap;
};

void shell_step(struct shell *shell, size_t n);
/* Blanks and line ends behind a backslash. */
void shell_skip_blanks(struct shell *shell);
/* Commands up to the end of the text. */
int shell_read_commands(struct shell_reader *reader,
                        struct err *err) MUST_CHECK;
/* Those of another text, as `eval` runs them. */
int shell_read_text(struct shell_reader *reader, const char *text, size_t line,
                    struct err *err) MUST_CHECK;
/* One command that begins with no keyword. */
int shell_read_command(struct shell_reader *reader, struct err *err) MUST_CHECK;
/* Words up to the end of a command; `is_declared`: of `export` and its like. */
int shell_read_words(struct shell_reader *reader, struct shell_words *words,
                     bool is_declared, struct err *err) MUST_CHECK;
/* From '<' or '>' on. */
int shell_read_redirection(struct shell_reader *reader,
                           struct err *err) MUST_CHECK;
/* The bodies of the here-documents of the line before. */
int shell_read_here(struct shell_reader *reader, struct err *err) MUST_CHECK;

#endif
