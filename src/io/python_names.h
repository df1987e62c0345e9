/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PYTHON_NAMES_H
#define NEUROSHARD_IO_PYTHON_NAMES_H

#include "base/json.h"

/* Returns the values of the names that a Python program assigns, as an object.
 * A name has a value only if all of its assignments give it the same one, and
 * if it is no loop variable and no parameter. Other names are unknown
 * (io/python_value.h). The caller owns the result. */
json_t *python_names(const char *text, struct arena *arena);

#endif
