/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SHELL_H
#define NEUROSHARD_IO_SHELL_H

#include "base/mem.h"

/*
 * The commands of a shell script, without running any. Quotes, comments,
 * continued lines, here-documents, variables and arrays with appending, default
 * values, whole-number arithmetic, `if`, `case`, loops, functions, subshells
 * and `eval` are followed as bash follows them.
 *
 * What only a running shell knows stays unknown: the output of a command, an
 * argument of the script, a variable that the script does not set, one that a
 * branch or a loop may have changed. Such a part of a word stands between
 * SHELL_UNKNOWN and SHELL_KNOWN as the script has it.
 */
#define SHELL_UNKNOWN '\1'
#define SHELL_KNOWN '\2'

struct shell_word {
    const char *text;
    size_t line; /* from 1, where the word begins */
};

struct shell_command {
    const struct shell_word *words; /* [n_words], n_words >= 1 */
    size_t n_words;
};

/* Gets each simple command in the order of the text, those of all branches. */
typedef int shell_take(void *ctx, const struct shell_command *command,
                       struct err *err);

/* A script, or a part of one, and what becomes of it. */
struct shell_script {
    const char *text, *source;
    size_t line; /* of the text's first character */
    shell_take *take;
    void *ctx;
    /* Reads line by line instead, for a text that is no script as a whole:
     * lines that are no command are passed over if this says that they are
     * foreign. */
    bool (*is_foreign)(const char *line);
    /* Gets "# X is not set in the file: 8, its default" lines; or NULL. */
    struct buf *notes;
    struct arena *arena; /* gets the words */
};

/* ERR_INPUT is "source:line: what is wrong": a quote or a bracket that is not
 * closed, `if` without `fi`, control characters, or more nesting, variables or
 * text than a script has. */
int shell_read(const struct shell_script *script, struct err *err) MUST_CHECK;

/* Whether all of a word is known. */
bool shell_is_known(const char *word);
/* The word as the script has it, in the arena. */
const char *shell_shown(const char *word, struct arena *arena) NEVER_NULL;

#endif
