/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SHELL_SCRIPT_H
#define NEUROSHARD_IO_SHELL_SCRIPT_H

#include "base/mem.h"

/*
 * Shell scripts, and the commands in them.
 *
 * Values that only a running shell knows are unknown: the output of a command,
 * an argument of the script, a variable that the script does not set, a
 * variable that a branch or a loop may have changed. In a word, an unknown part
 * is represented by its source text in the script, between SHELL_UNKNOWN and
 * SHELL_KNOWN.
 */

#define SHELL_UNKNOWN '\1'
#define SHELL_KNOWN '\2'

struct shell_word {
    const char *text;
    size_t line; /* line on which the word begins, from 1 */
};

struct shell_command {
    const struct shell_word *words; /* [n_words], n_words >= 1 */
    size_t n_words;
};

/* Callback for each simple command of a script, in the order of the text. The
 * commands of all branches are passed, whether or not a shell would run
 * them. */
typedef int shell_take(void *ctx, const struct shell_command *command,
                       struct err *err);

/* A script, or a part of a script, and the callback for its commands. */
struct shell_script {
    const char *text, *source;
    size_t line; /* line number of the text's first character */
    shell_take *take;
    void *ctx;
    /* Optional callback for texts that are not a script as a whole. If it is
     * set, the text is read line by line. A line that cannot be read as a
     * command is skipped if the callback returns true for the line. */
    bool (*is_foreign)(const char *line);
    /* Gets comment lines about the values of variables, such as "# $X is not
     * set in the file: 8, its default". May be NULL. */
    struct buf *notes;
    struct arena *arena; /* holds the words */
};

/* True if a word has no unknown part. */
bool shell_is_known(const char *word);
/* Returns the word as it is written in the script, in the arena. */
const char *shell_shown(const char *word, struct arena *arena) NEVER_NULL;

#endif
