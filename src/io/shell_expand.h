/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SHELL_EXPAND_H
#define NEUROSHARD_IO_SHELL_EXPAND_H

#include "io/shell_state.h"

/* Expansion of words, and the brackets in them. */

/* Marker in a word during its expansion: separates two fields. */
#define SHELL_FIELD '\4'

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

#endif
