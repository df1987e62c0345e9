/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PYTHON_VALUE_H
#define NEUROSHARD_IO_PYTHON_VALUE_H

#include "base/json.h"

/* Reader of values that Python prints, and of constants in its code. */

/* Parses one value that Python prints: a number, string, list, tuple, dict, or
 * Name(value, key=value, ...). The last form becomes an object, as a dict does;
 * an argument without a name has its index as key. *pos moves behind the value.
 * The caller owns *value. ERR_INPUT messages lack the line.
 *
 * If `names` is not NULL, the text is code: an expression of integers is
 * computed, `names` gives the values of names, comments are skipped, and any
 * other expression, such as a call, is an unknown value. */
int python_value(json_t **value, const char **pos, const json_t *names,
                 struct err *err) MUST_CHECK;
/* Parses the arguments of a call in code as an object, as above. *pos is behind
 * the opening bracket and moves behind the closing one. The caller owns
 * *call. */
int python_call(json_t **call, const char **pos, const json_t *names,
                struct err *err) MUST_CHECK;
/* Returns the text of an expression whose value is not known, or NULL if the
 * value is known. */
const char *python_unknown(const json_t *value);
/* Makes an unknown value out of the text of an expression. */
json_t *python_make_unknown(const char *text);

#endif
