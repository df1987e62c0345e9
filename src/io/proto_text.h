/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PROTO_TEXT_H
#define NEUROSHARD_IO_PROTO_TEXT_H

#include "base/json.h"

/* Key of a message's line in the text. No field has this name. */
#define PROTO_LINE ""

/* Parses protocol buffers in text format: "name: value" and "name { ... }",
 * with '#' comments, lists in brackets and adjacent strings. A message becomes
 * an object in which each field is the list of its values in their order:
 * messages, integers, or texts for all other values. The caller owns *root.
 * ERR_INPUT messages have the form "source:line: what is wrong". */
int proto_text(json_t **root, const char *text, const char *source,
               struct err *err) MUST_CHECK;

#endif
