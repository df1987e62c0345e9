/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SHELL_H
#define NEUROSHARD_IO_SHELL_H

#include "io/shell_script.h"

/*
 * Reader of the commands in a shell script. The reader runs nothing. It
 * understands the following constructs as bash does: quotes, comments,
 * continued lines, here-documents, variables and arrays with appending, default
 * values, integer arithmetic, `if`, `case`, loops, functions, subshells and
 * `eval`.
 */

/* Reads a script and passes its commands to the callback. ERR_INPUT messages
 * begin with "source:line:". Causes: an unclosed quote or bracket, `if` without
 * `fi`, control characters, or more nesting, variables or text than the reader
 * allows. */
int shell_read(const struct shell_script *script, struct err *err) MUST_CHECK;

#endif
