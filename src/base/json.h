/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_JSON_H
#define NEUROSHARD_BASE_JSON_H

#include "base/mem.h"
#include "base/member.h"

#include <jansson.h>

/*
 * jansson bent into this project's shape: documents, their values, and what
 * stands in them.
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
/* A count that may have saturated, which then stays a large number. */
json_int_t json_count(uint64_t value);
/* The member at that place: a number as above, true or false, or a text, null
 * for none, quoted where it is not printable. */
json_t *json_member(enum member_type type, const void *at);

/* A text as it is, what is none as JSON has it, and "" for NULL; in the
 * arena. */
const char *json_cell(const json_t *value, struct arena *arena) NEVER_NULL;

/* Appends a value, which it takes, as JSON in one line. */
void json_print(struct buf *out, json_t *value);
/* Indented text of root with numbers that read back the same, ends in a
 * newline; the caller frees it with mem_free (or free). */
char *json_to_text(const json_t *root);

/*
 * An object in a JSON document that knows where it stands, so that each
 * message names the whole way: "plan.json: shards[12].device is missing".
 * A member that is null counts as absent.
 */
struct json_place {
    const json_t *object; /* borrowed */
    const char *source;   /* file name, not owned */
    size_t line;          /* in it, 0 where messages name none */
    const size_t *lines;  /* of the members, by place_child_lines; or NULL */
    struct arena *arena;  /* where texts go; not owned */
    char path[64];        /* "shards[12]." or "" for the document itself */
    bool is_strict;       /* whole numbers are written as such */
};

/* The document's root; ERR_INPUT where it is no object. */
int place_root(struct json_place *out, const json_t *root, const char *source,
               struct arena *arena, struct err *err) MUST_CHECK;
/* Member `key`, an object. */
int place_object(struct json_place *out, const struct json_place *place,
                 const char *key, struct err *err) MUST_CHECK;
/* Member `key`, a list. */
int place_list(const json_t **out, const struct json_place *place,
               const char *key, struct err *err) MUST_CHECK;
/* A list with n entries; of one that has others the sentence says which ("not",
 * "but T is"). */
int place_list_of(const json_t **out, const struct json_place *place,
                  const char *key, size_t n, const char *what,
                  struct err *err) MUST_CHECK;
/* Element idx of `list`, which is member `key`; an object. */
int place_element(struct json_place *out, const struct json_place *place,
                  const char *key, const json_t *list, size_t idx,
                  struct err *err) MUST_CHECK;

bool place_has(const struct json_place *place, const char *key);

/* ERR_INPUT for a key that is none of the format's, the last of them NULL: a
 * mistyped one is found here, not in what comes of it. */
int place_check_keys(const struct json_place *place, const char *const *known,
                     struct err *err) MUST_CHECK;

/* A whole number in [min, max]. Unless the place is strict, 12.0 is one, and,
 * as JSON readers lose what is beyond 2^63 - 1, a string of digits. */
int place_u64(uint64_t *out, const struct json_place *place, const char *key,
              uint64_t min, uint64_t max, struct err *err) MUST_CHECK;
int place_u32(uint32_t *out, const struct json_place *place, const char *key,
              uint32_t min, uint32_t max, struct err *err) MUST_CHECK;
/* Element idx of list `key`, by the same rules; a double from min to max. */
int place_list_u64(uint64_t *out, const struct json_place *place,
                   const char *key, const json_t *list, size_t idx,
                   struct err *err) MUST_CHECK;
int place_list_double(double *out, const struct json_place *place,
                      const char *key, const json_t *list, size_t idx,
                      double min, double max, struct err *err) MUST_CHECK;

/*
 * What a format says of a member, a line of a table each: where its value
 * stands and what it may be. Numbers are from min to max, of whole ones 0x1p63
 * is INT64_MAX and 0x1p64 UINT64_MAX; a text is printable (text_is_printable),
 * a hash is 16 hexadecimal digits (hash_text), an enum one of its names.
 */
struct place_field {
    const char *key;
    enum member_type type; /* by MEMBER_OF, like the next */
    size_t offset;
    bool is_needed; /* else it may be absent, which leaves its place as it is */
    double min, max;
    const char *const *names; /* of an enum, from 0, the last one NULL */
};
/* Reads those members into the struct at `out`. */
int place_fields(void *out, const struct json_place *place,
                 const struct place_field *fields, size_t n,
                 struct err *err) MUST_CHECK;
#define PLACE_FIELDS(out, place, fields, err)                                  \
    place_fields((out), (place), (fields), sizeof(fields) / sizeof(*(fields)), \
                 (err))

/* The counterpart: sets those members, in the order of the table. What JSON
 * lacks is null (of a real what is not finite, of a text NULL), a string of
 * digits (whole numbers beyond 2^63 - 1), or quoted (what of a text is not
 * printable), so that all but null reads back the same. */
void place_set_fields(json_t *object, const void *row,
                      const struct place_field *fields, size_t n);
#define PLACE_SET_FIELDS(object, row, fields)   \
    place_set_fields((object), (row), (fields), \
                     sizeof(fields) / sizeof(*(fields)))
/* Those of a row as an object of their own, and of n rows as a list of such;
 * the caller decrefs them. */
json_t *place_row(const void *row, const struct place_field *fields, size_t n);
#define PLACE_ROW(row, fields) \
    place_row((row), (fields), sizeof(fields) / sizeof(*(fields)))
json_t *place_list_rows(const void *rows, size_t n, size_t row_bytes,
                        const struct place_field *fields, size_t n_fields);
#define PLACE_LIST_ROWS(rows, n, fields)                    \
    place_list_rows((rows), (n), sizeof(*(rows)), (fields), \
                    sizeof(fields) / sizeof(*(fields)))

/* The lines on which the members or elements begin that stand `depth` (1: the
 * document's own) containers deep, in their order, which is the order that
 * jansson keeps; in the arena. The text is known to be valid. */
const size_t *place_child_lines(const char *text, size_t len, size_t depth,
                                struct arena *arena) NEVER_NULL;

/* The line of the member with which a sentence begins, or of the place. */
size_t place_line(const struct json_place *place, const char *sentence);
/* ERR_INPUT with "source: path" and then the sentence, which begins with the
 * member that it is of. */
int place_error(const struct json_place *place, struct err *err,
                const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
