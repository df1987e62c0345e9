/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include "base/hash.h"
#include "base/printable.h"
#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Largest double that is used as a whole number. Above 2^53 neighbouring whole
 * numbers have the same double. */
#define DOUBLE_WHOLE_MAX 0x1p53

void json_init(void)
{
    json_set_alloc_funcs(mem_take, mem_free);
}

int json_parse(json_t **root, const char *text, size_t len, const char *where,
               struct err *err)
{
    json_error_t error;

    *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    if (*root)
        return 0;
    return err_input(err, "%s:%d: not valid JSON: %s", where,
                     error.line > 0 ? error.line : 1, error.text);
}

json_t *json_real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_whole(uint64_t value)
{
    char digits[24];

    if (value <= INT64_MAX)
        return json_integer((json_int_t)value);
    snprintf(digits, sizeof(digits), "%" PRIu64, value);
    return json_string(digits);
}

json_int_t json_count(uint64_t value)
{
    return (json_int_t)min_u64(value, INT64_MAX);
}

json_t *json_member(enum member_type type, const void *pos)
{
    struct arena scratch = {0};
    const char *text;
    json_t *value;

    switch (type) {
    case MEMBER_U32:
        return json_integer(*(const uint32_t *)pos);
    case MEMBER_U64:
        return json_whole(*(const uint64_t *)pos);
    case MEMBER_REAL:
        return json_real_or_null(*(const double *)pos);
    case MEMBER_BOOL:
        return json_boolean(*(const bool *)pos);
    case MEMBER_TEXT:
    case MEMBER_HASH:
        break;
    }
    text = *(const char *const *)pos;
    if (!text)
        return json_null();
    /* text_shown returns valid UTF-8 */
    value = json_string(text_shown(text, &scratch));
    arena_release(&scratch);
    return value;
}

const char *json_cell(const json_t *value, struct arena *arena)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
    char *dumped = json_is_string(value) ? NULL : json_dumps(value, flags);
    const char *text = dumped ? dumped : json_string_value(value);

    text = arena_strdup(arena, text ? text : "");
    mem_free(dumped);
    return text;
}

/* Room in bytes for a value that is printed. A longer one is printed twice. */
#define USUAL_LEN 512

void json_print(struct buf *out, json_t *value)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
    size_t room = USUAL_LEN, len;

    len = json_dumpb(value, buf_reserve(out, room), room, flags);
    if (len > room) {
        room = len;
        len = json_dumpb(value, buf_reserve(out, room), room, flags);
    }
    assert(len); /* fails only if a caller passed text that is not UTF-8 */
    out->len += len;
    out->data[out->len] = '\0';
    json_decref(value);
}

char *json_to_text(const json_t *root)
{
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    const size_t len = strlen(text);

    text = mem_grow(text, len + 2, 1);
    memcpy(text + len, "\n", 2);
    return text;
}

/* --- access to a document --- */

size_t place_line(const struct json_place *place, const char *sentence)
{
    json_t *object = (json_t *)(uintptr_t)place->object, *value;
    const size_t *line = place->lines;
    const char *key;

    if (!line)
        return place->line;
    json_object_foreach(object, key, value)
    {
        const size_t len = strlen(key);

        if (!strncmp(sentence, key, len) && strchr(" [", sentence[len]))
            return *line;
        line++;
    }
    return place->line;
}

int place_error(const struct json_place *place, struct err *err,
                const char *fmt, ...)
{
    char sentence[sizeof(err->msg)], line[24] = "";
    va_list args;

    va_start(args, fmt);
    text_sentence(sentence, sizeof(sentence), fmt, args);
    va_end(args);
    if (place->line)
        snprintf(line, sizeof(line), ":%zu", place_line(place, sentence));
    return err_input(err, "%s%s: %s%s", place->source, line, place->path,
                     sentence);
}

static const char *type_of(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",    [JSON_ARRAY] = "a list",
        [JSON_STRING] = "a string",     [JSON_INTEGER] = "a number",
        [JSON_REAL] = "a number",       [JSON_TRUE] = "true or false",
        [JSON_FALSE] = "true or false", [JSON_NULL] = "null",
    };

    return value ? names[json_typeof(value)] : "absent";
}

int place_root(struct json_place *out, const json_t *root, const char *source,
               struct arena *arena, struct err *err)
{
    *out =
        (struct json_place){.object = root, .source = source, .arena = arena};
    if (json_is_object(root))
        return 0;
    return place_error(out, err, "the file must be an object, not %s",
                       type_of(root));
}

bool place_has(const struct json_place *place, const char *key)
{
    const json_t *value = json_object_get(place->object, key);

    return value && !json_is_null(value);
}

int place_check_keys(const struct json_place *place, const char *const *known,
                     struct err *err)
{
    json_t *object = (json_t *)(uintptr_t)place->object;
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        if (text_choice(known, key) < 0)
            return place_error(place, err,
                               "%.40s is not a known member; known are %s", key,
                               text_list(known, ", ", place->arena));
    }
    return 0;
}

static int find(const json_t **out, const struct json_place *place,
                const char *key, struct err *err)
{
    *out = json_object_get(place->object, key);
    if (*out)
        return 0;
    return place_error(place, err, "%s is missing", key);
}

static int wrong_type(const struct json_place *place, const char *key,
                      const char *want, const json_t *got, struct err *err)
{
    return place_error(place, err, "%s must be %s, not %s", key, want,
                       type_of(got));
}

/* Sets *out to an object and its position. `name` is a member's key or
 * "key[3]". */
static int enter(struct json_place *out, const struct json_place *place,
                 const char *name, const json_t *value, struct err *err)
{
    if (!json_is_object(value))
        return wrong_type(place, name, "an object", value, err);
    *out = *place;
    out->line = place_line(place, name);
    out->lines = NULL;
    out->object = value;
    snprintf(out->path, sizeof(out->path), "%.30s%.32s.", place->path, name);
    return 0;
}

int place_object(struct json_place *out, const struct json_place *place,
                 const char *key, struct err *err)
{
    const json_t *value;

    return find(&value, place, key, err) ? -1
                                         : enter(out, place, key, value, err);
}

int place_list(const json_t **out, const struct json_place *place,
               const char *key, struct err *err)
{
    if (find(out, place, key, err))
        return -1;
    if (!json_is_array(*out))
        return wrong_type(place, key, "a list", *out, err);
    return 0;
}

int place_list_of(const json_t **out, const struct json_place *place,
                  const char *key, size_t n, const char *what, struct err *err)
{
    if (place_list(out, place, key, err))
        return -1;
    if (json_array_size(*out) == n)
        return 0;
    return place_error(place, err, "%s has %zu entries, %s %zu", key,
                       json_array_size(*out), what, n);
}

int place_value(struct json_place *out, const struct json_place *place,
                const char *key, size_t idx, const json_t *value,
                struct err *err)
{
    char name[64];

    snprintf(name, sizeof(name), "%.32s[%zu]", key, idx);
    return enter(out, place, name, value, err);
}

int place_element(struct json_place *out, const struct json_place *place,
                  const char *key, const json_t *list, size_t idx,
                  struct err *err)
{
    return place_value(out, place, key, idx, json_array_get(list, idx), err);
}

/* Reads a text, which must be printable and, for MEMBER_HASH, look as hash_text
 * prints it. The text is copied into the arena. */
static int read_text(const char **out, const struct json_place *place,
                     const struct place_field *field, const json_t *value,
                     struct err *err)
{
    static const size_t n_digits = HASH_TEXT_MAX - 1;
    const char *text = json_string_value(value);

    if (!text)
        return wrong_type(place, field->key, "a string", value, err);
    if (!text_is_printable(text))
        return place_error(place, err, "%s is '%.80s', not printable text",
                           field->key, text);
    if (field->type == MEMBER_HASH &&
        (strlen(text) != n_digits ||
         strspn(text, "0123456789abcdef") != n_digits))
        return place_error(place, err,
                           "%s is '%.40s', not %zu hexadecimal digits",
                           field->key, text, n_digits);
    *out = arena_strdup(place->arena, text);
    return 0;
}

static int read_double(double *out, const struct json_place *place,
                       const char *key, const json_t *value, double min,
                       double max, struct err *err)
{
    double x = json_number_value(value);

    if (!json_is_number(value))
        return wrong_type(place, key, "a number", value, err);
    if (!(x >= min && x <= max))
        return place_error(place, err, "%s is %.17g, not in %g to %.17g", key,
                           x, min, max);
    *out = x;
    return 0;
}

static uint64_t whole(double x)
{
    return x >= 0x1p64 ? UINT64_MAX : x == 0x1p63 ? INT64_MAX : (uint64_t)x;
}

/* Reads a text that must be one of the names of an enum, and stores the index
 * of the name. */
static int read_choice(uint32_t *out, const struct json_place *place,
                       const struct place_field *field, const json_t *value,
                       struct err *err)
{
    int choice = json_is_string(value)
                     ? text_choice(field->names, json_string_value(value))
                     : -1;

    *out = (uint32_t)choice;
    if (choice >= 0)
        return 0;
    return place_error(place, err, "%s must be one of %s", field->key,
                       text_list(field->names, ", ", place->arena));
}

static int read_field(char *pos, const struct json_place *place,
                      const struct place_field *field, struct err *err)
{
    const char *key = field->key;
    const json_t *value;

    if (find(&value, place, key, err))
        return -1;
    switch (field->type) {
    case MEMBER_U32:
        if (field->names)
            return read_choice((void *)pos, place, field, value, err);
        return place_u32((void *)pos, place, key, (uint32_t)field->min,
                         (uint32_t)field->max, err);
    case MEMBER_U64:
        return place_u64((void *)pos, place, key, whole(field->min),
                         whole(field->max), err);
    case MEMBER_REAL:
        return read_double((void *)pos, place, key, value, field->min,
                           field->max, err);
    case MEMBER_BOOL:
        *(bool *)pos = json_is_true(value);
        return json_is_boolean(value)
                   ? 0
                   : wrong_type(place, key, "true or false", value, err);
    case MEMBER_TEXT:
    case MEMBER_HASH:
        return read_text((void *)pos, place, field, value, err);
    }
    return 0;
}

int place_fields(void *out, const struct json_place *place,
                 const struct place_field *fields, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if ((fields[i].is_needed || place_has(place, fields[i].key)) &&
            read_field((char *)out + fields[i].offset, place, &fields[i], err))
            return -1;
    return 0;
}

void place_set_fields(json_t *object, const void *row,
                      const struct place_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const void *pos = (const char *)row + fields[i].offset;
        const char *const *names = fields[i].names;

        json_object_set_new(object, fields[i].key,
                            names ? json_string(names[*(const uint32_t *)pos])
                                  : json_member(fields[i].type, pos));
    }
}

json_t *place_row(const void *row, const struct place_field *fields, size_t n)
{
    json_t *object = json_object();

    place_set_fields(object, row, fields, n);
    return object;
}

json_t *place_list_rows(const void *rows, size_t n, size_t row_bytes,
                        const struct place_field *fields, size_t n_fields)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            list,
            place_row((const char *)rows + i * row_bytes, fields, n_fields));
    return list;
}

/* The scan looks only at quotes, brackets and commas. A member or element
 * begins with the first character after an opening bracket or a comma. This
 * character may itself be a bracket. */
const size_t *place_child_lines(const char *text, size_t len, size_t depth,
                                struct arena *arena)
{
    size_t line = 1, pos = 0, n = 0, cap = 0, *lines = NULL;
    bool in_string = false, before_child = false;

    for (const char *p = text; p < text + len; p++) {
        line += *p == '\n';
        if (in_string) {
            in_string = *p != '"';
            p += *p == '\\';
            continue;
        }
        if (before_child && !strchr(" \t\r\n]}", *p)) {
            lines = mem_room(lines, n, &cap, sizeof(*lines));
            lines[n++] = line;
            before_child = false;
        }
        if (*p == '"')
            in_string = true;
        else if (*p == '{' || *p == '[')
            before_child = ++pos == depth;
        else if (*p == '}' || *p == ']')
            before_child = false, pos--;
        else if (*p == ',')
            before_child = pos == depth;
    }
    return arena_keep(arena, lines, n, sizeof(*lines));
}

/* Converts a JSON value to a whole number. Returns false if the value is not a
 * whole number or does not fit into 64 bits. */
static bool to_u64(uint64_t *out, const json_t *value, bool is_strict)
{
    double x;

    if (json_is_integer(value)) {
        *out = (uint64_t)json_integer_value(value);
        return json_integer_value(value) >= 0;
    }
    if (is_strict)
        return false;
    if (json_is_string(value))
        return text_to_u64(json_string_value(value), out);
    x = json_real_value(value);
    if (!json_is_real(value) || x < 0 || x > DOUBLE_WHOLE_MAX || x != floor(x))
        return false;
    *out = (uint64_t)x;
    return true;
}

/* Reads a whole number; `key` is a member's name or "key[3]". */
static int read_u64(uint64_t *out, const struct json_place *place,
                    const char *key, const json_t *value, uint64_t min,
                    uint64_t max, struct err *err)
{
    uint64_t n = 0;

    if (!to_u64(&n, value, place->is_strict))
        return json_is_number(value)
                   ? place_error(place, err,
                                 "%s is %.17g, not a whole number >= 0", key,
                                 json_number_value(value))
                   : wrong_type(place, key, "a whole number", value, err);
    if (n < min || n > max)
        return place_error(place, err,
                           "%s is %" PRIu64 ", outside %" PRIu64 " to %" PRIu64,
                           key, n, min, max);
    *out = n;
    return 0;
}

int place_u64(uint64_t *out, const struct json_place *place, const char *key,
              uint64_t min, uint64_t max, struct err *err)
{
    const json_t *value;

    return find(&value, place, key, err)
               ? -1
               : read_u64(out, place, key, value, min, max, err);
}

int place_u32(uint32_t *out, const struct json_place *place, const char *key,
              uint32_t min, uint32_t max, struct err *err)
{
    uint64_t n = 0;

    if (place_u64(&n, place, key, min, max, err))
        return -1;
    *out = (uint32_t)n;
    return 0;
}

int place_list_u64(uint64_t *out, const struct json_place *place,
                   const char *key, const json_t *list, size_t idx,
                   struct err *err)
{
    char name[64];

    snprintf(name, sizeof(name), "%.32s[%zu]", key, idx);
    return read_u64(out, place, name, json_array_get(list, idx), 0, UINT64_MAX,
                    err);
}

int place_list_double(double *out, const struct json_place *place,
                      const char *key, const json_t *list, size_t idx,
                      double min, double max, struct err *err)
{
    const json_t *value = json_array_get(list, idx);
    char name[64];

    *out = json_number_value(value);
    if (json_is_number(value) && *out >= min && *out <= max)
        return 0; /* fast path: formats no name for a valid number */
    snprintf(name, sizeof(name), "%.32s[%zu]", key, idx);
    return read_double(out, place, name, value, min, max, err);
}
