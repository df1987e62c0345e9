/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PYTHON_VALUE_H
#define NEUROSHARD_IO_PYTHON_VALUE_H

#include "base/json.h"

/* Reader of the values that Python prints. */

/* Parses one value that Python prints: a number, string, list, dict, or
 * Name(key=value, ...). The last form becomes an object, as a dict does. *pos
 * moves behind the value. The caller owns *value. ERR_INPUT messages lack the
 * line. */
int python_value(json_t **value, const char **pos, struct err *err) MUST_CHECK;

#endif
