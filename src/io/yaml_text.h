/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_YAML_TEXT_H
#define NEUROSHARD_IO_YAML_TEXT_H

#include "base/json.h"

/* Key of a mapping's line in the text. */
#define YAML_LINE ""

/* Parses the part of YAML that configurations use: mappings and sequences by
 * indentation or in brackets, plain and quoted scalars, and comments. Anchors,
 * tags, block scalars and further documents are refused. An integer may have
 * underscores. A mapping that is not inside of brackets has its line as the
 * member YAML_LINE. The caller
 * owns *root. ERR_INPUT messages have the form "source:line: what is wrong". */
int yaml_text(json_t **root, const char *text, size_t len, const char *source,
              struct arena *arena, struct err *err) MUST_CHECK;

#endif
