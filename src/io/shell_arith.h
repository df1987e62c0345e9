/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SHELL_ARITH_H
#define NEUROSHARD_IO_SHELL_ARITH_H

#include "io/shell_state.h"

/* Arithmetic of the shell. */

/* Evaluates an arithmetic expression without '$'. Returns false if the value of
 * the expression is unknown. */
bool shell_calculate(struct shell *shell, const char *text, int64_t *out);

#endif
