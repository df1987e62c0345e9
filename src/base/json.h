/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_JSON_H
#define NEUROSHARD_BASE_JSON_H

#include "base/mem.h"
#include "base/member.h"

#include <jansson.h>

/*
 * jansson bent into this project's shape; what stands in a document is read by
 * base/json_place.h.
 */

/* Gives jansson this program's memory (base/mem.h), so that none of its calls
 * fails for want of it. Call once, before any other. */
void json_init(void);

/* Parses text. Duplicate keys are refused; ERR_INPUT is
 * "where:line: not valid JSON: ...". The caller decrefs *root. */
int json_parse(json_t **root, const char *text, size_t len, const char *where,
               struct err *err) MUST_CHECK;

/* A number, or null for one that is not finite, which JSON does not have. */
json_t *json_real_or_null(double value);
/* A whole number, or, as JSON readers lose what is beyond 2^63 - 1, a string of
 * digits. */
json_t *json_whole(uint64_t value);
/* The member at that place: a number as above, true or false, or a text, null
 * for none, quoted where it is not printable. */
json_t *json_member(enum member_type type, const void *at);

/* A text as it is, what is none as JSON has it, and "" for NULL; in the
 * arena. */
const char *json_cell(const json_t *value, struct arena *arena) NEVER_NULL;

/* Indented text of root with numbers that read back the same, ends in a
 * newline; the caller frees it with mem_free (or free). */
char *json_to_text(const json_t *root);

#endif
