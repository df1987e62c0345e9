/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_JSON_H
#define NEUROSHARD_BASE_JSON_H

#include "base/mem.h"
#include "base/member.h"

#include <jansson.h>

/*
 * A layer over jansson: JSON documents, their values, and access to members
 * with error messages.
 */

/* Makes jansson use this program's allocator (base/mem.h), so that none of its
 * calls fails for lack of memory. Call it once, before any other function of
 * jansson. */
void json_init(void);

/* Parses text. Duplicate keys are refused. The sentence of ERR_INPUT is
 * "where:line: not valid JSON: ...". The caller decrefs *root. */
int json_parse(json_t **root, const char *text, size_t len, const char *where,
               struct err *err) MUST_CHECK;

/* Returns a number, or null if the value is not finite, because JSON has no
 * such numbers. */
json_t *json_real_or_null(double value);
/* Returns a whole number. Above 2^63 - 1 it is a string of digits, because JSON
 * readers lose larger numbers. */
json_t *json_whole(uint64_t value);
/* Returns a count as a JSON integer. A count above INT64_MAX, which may have
 * saturated, becomes INT64_MAX. */
json_int_t json_count(uint64_t value);
/* Returns the struct member of this type that is stored at `pos` as a JSON
 * value: a number (json_real_or_null, json_whole), true or false, or a text. A
 * NULL text becomes null; a text that is not printable is quoted. */
json_t *json_member(enum member_type type, const void *pos);

/* Returns the value as a text in the arena: a string unchanged, any other value
 * in JSON notation, and "" for NULL. */
const char *json_cell(const json_t *value, struct arena *arena) NEVER_NULL;

/* Appends a value as JSON in one line, and decrefs it. */
void json_print(struct buf *out, json_t *value);
/* Returns the document `root` as indented text that ends in a newline. The
 * numbers of the document read back unchanged. The caller frees it with
 * mem_free (or free). */
char *json_to_text(const json_t *root);

/*
 * An object in a JSON document together with its position, so that messages can
 * name the full path: "plan.json: shards[12].device is missing". A member that
 * is null counts as absent.
 */
struct json_place {
    const json_t *object; /* the object; borrowed */
    const char *source;   /* file name, not owned */
    /* line of the object in the file; 0 if messages name no line */
    size_t line;
    /* Lines of the object's members, by place_child_lines; or NULL. */
    const size_t *lines;
    struct arena *arena; /* arena for the texts that are read; not owned */
    char path[64];       /* "shards[12]." or "" for the document itself */
    /* A whole number must be written as a whole number: 12.0 and a string of
     * digits are refused. */
    bool is_strict;
};

/* Sets *out to the document's root. ERR_INPUT if it is no object. */
int place_root(struct json_place *out, const json_t *root, const char *source,
               struct arena *arena, struct err *err) MUST_CHECK;
/* Sets *out to member `key`, which must be an object. */
int place_object(struct json_place *out, const struct json_place *place,
                 const char *key, struct err *err) MUST_CHECK;
/* Sets *out to member `key`, which must be a list. */
int place_list(const json_t **out, const struct json_place *place,
               const char *key, struct err *err) MUST_CHECK;
/* Sets *out to member `key`, which must be a list of n entries. `what` is the
 * text between the two counts in the error message. It is "not", or for example
 * "but T is" in the message "key has 3 entries, but T is 4". */
int place_list_of(const json_t **out, const struct json_place *place,
                  const char *key, size_t n, const char *what,
                  struct err *err) MUST_CHECK;
/* Sets *out to element idx of `list`, which is member `key`. The element must
 * be an object. */
int place_element(struct json_place *out, const struct json_place *place,
                  const char *key, const json_t *list, size_t idx,
                  struct err *err) MUST_CHECK;
/* The same for an element that is known. */
int place_value(struct json_place *out, const struct json_place *place,
                const char *key, size_t idx, const json_t *value,
                struct err *err) MUST_CHECK;

bool place_has(const struct json_place *place, const char *key);

/* Fails with ERR_INPUT if the object has a key that is not in `known`, which
 * ends with NULL. This finds a mistyped key, which would otherwise count as
 * absent. */
int place_check_keys(const struct json_place *place, const char *const *known,
                     struct err *err) MUST_CHECK;

/* Reads a whole number in [min, max]. Unless place->is_strict is set, 12.0 is
 * accepted as 12, and so is a string of digits, because JSON readers lose
 * numbers above 2^63 - 1. */
int place_u64(uint64_t *out, const struct json_place *place, const char *key,
              uint64_t min, uint64_t max, struct err *err) MUST_CHECK;
int place_u32(uint32_t *out, const struct json_place *place, const char *key,
              uint32_t min, uint32_t max, struct err *err) MUST_CHECK;
/* Read element idx of `list`, which is member `key`: a whole number by the
 * rules of place_u64, or a double in [min, max]. */
int place_list_u64(uint64_t *out, const struct json_place *place,
                   const char *key, const json_t *list, size_t idx,
                   struct err *err) MUST_CHECK;
int place_list_double(double *out, const struct json_place *place,
                      const char *key, const json_t *list, size_t idx,
                      double min, double max, struct err *err) MUST_CHECK;

/*
 * Description of one member of a format; a format is a table of them. It gives
 * the key, the place of the value in a struct, and the allowed values. A number
 * must be in [min, max]; for whole numbers 0x1p63 means INT64_MAX and 0x1p64
 * UINT64_MAX. A text must be printable (text_is_printable), a hash 16
 * hexadecimal digits (hash_text), and an enum one of its names.
 */
struct place_field {
    const char *key;
    enum member_type type; /* type and offset of the struct member, by MEMBER_OF
                              (base/member.h) */
    size_t offset;
    /* If false, the member may be absent; its place in the struct then keeps
     * its value. */
    bool is_needed;
    double min, max;
    const char *const *names; /* names of the values of an enum, from value 0
                                 on; NULL-terminated */
};
/* Reads the members of the table `fields` into the struct at `out`. */
int place_fields(void *out, const struct json_place *place,
                 const struct place_field *fields, size_t n,
                 struct err *err) MUST_CHECK;
#define PLACE_FIELDS(out, place, fields, err)                                  \
    place_fields((out), (place), (fields), sizeof(fields) / sizeof(*(fields)), \
                 (err))

/* Counterpart of place_fields: sets the members of a table in the object, in
 * the order of the table. Values that JSON cannot hold are written as follows.
 * Everything except null reads back unchanged.
 *
 * real that is not finite          null
 * text that is NULL                null
 * whole number above 2^63 - 1      string of digits
 * text that is not printable       quoted text */
void place_set_fields(json_t *object, const void *row,
                      const struct place_field *fields, size_t n);
#define PLACE_SET_FIELDS(object, row, fields)   \
    place_set_fields((object), (row), (fields), \
                     sizeof(fields) / sizeof(*(fields)))
/* Return a row as a new JSON object whose members the table `fields` describes,
 * or n rows as a JSON list of one object per row. The caller decrefs the
 * result. */
json_t *place_row(const void *row, const struct place_field *fields, size_t n);
#define PLACE_ROW(row, fields) \
    place_row((row), (fields), sizeof(fields) / sizeof(*(fields)))
json_t *place_list_rows(const void *rows, size_t n, size_t row_bytes,
                        const struct place_field *fields, size_t n_fields);
#define PLACE_LIST_ROWS(rows, n, fields)                    \
    place_list_rows((rows), (n), sizeof(*(rows)), (fields), \
                    sizeof(fields) / sizeof(*(fields)))

/* Returns the line numbers on which members or elements begin, for all
 * containers at nesting level `depth` (1: the document itself). The numbers are
 * in the order of the text, which is also the order in which jansson keeps
 * members. The result is in the arena. The text must be valid JSON. */
const size_t *place_child_lines(const char *text, size_t len, size_t depth,
                                struct arena *arena) NEVER_NULL;

/* Returns the line of the member that a sentence of an error is about: the
 * sentence begins with the member's key. If the object has no such member,
 * returns the line of the object. */
size_t place_line(const struct json_place *place, const char *sentence);
/* Sets ERR_INPUT with "source: path" and the sentence, which begins with the
 * key of the member that is wrong. Returns -1. */
int place_error(const struct json_place *place, struct err *err,
                const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
