/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>

#include "base/mem.h"
#include "base/text.h"

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
    return err_set(err, ERR_INPUT, "%s:%d: not valid JSON: %s", where,
                   error.line > 0 ? error.line : 1, error.text);
}

static const char *type_name(json_type type)
{
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "a whole number";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "something else";
}

static bool has_type(const json_t *value, json_type type)
{
    switch (type) {
    case JSON_TRUE:
    case JSON_FALSE:
        return json_is_boolean(value);
    case JSON_REAL:
        return json_is_number(value);
    case JSON_OBJECT:
    case JSON_ARRAY:
    case JSON_STRING:
    case JSON_INTEGER:
    case JSON_NULL:
        return json_typeof(value) == type;
    }
    return false;
}

int json_member(json_t **out, const json_t *object, const char *key,
                json_type type, const char *where, struct err *err)
{
    json_t *value = json_object_get(object, key);

    if (!value)
        return err_set(err, ERR_INPUT, "%s: '%s' is missing", where, key);
    if (!has_type(value, type))
        return err_set(err, ERR_INPUT, "%s: '%s' must be %s, not %s", where,
                       key, type_name(type), type_name(json_typeof(value)));
    *out = value;
    return 0;
}

int json_member_string(const char **out, const json_t *object, const char *key,
                       const char *where, struct err *err)
{
    json_t *value = NULL;

    if (json_member(&value, object, key, JSON_STRING, where, err))
        return -1;
    *out = json_string_value(value);
    if (text_is_printable(*out))
        return 0;
    return err_set(err, ERR_INPUT, "%s: '%s' is '%.80s', not printable text",
                   where, key, *out);
}

int json_member_u64(uint64_t *out, const json_t *object, const char *key,
                    uint64_t max, const char *where, struct err *err)
{
    json_t *value = NULL;
    json_int_t n;

    if (json_member(&value, object, key, JSON_INTEGER, where, err))
        return -1;
    n = json_integer_value(value);
    if (n < 0 || (uint64_t)n > max)
        return err_set(err, ERR_INPUT,
                       "%s: '%s' is %" JSON_INTEGER_FORMAT
                       ", outside 0 to %" PRIu64,
                       where, key, n, max);
    *out = (uint64_t)n;
    return 0;
}

int json_member_double(double *out, const json_t *object, const char *key,
                       const char *where, struct err *err)
{
    json_t *value = NULL;

    if (json_member(&value, object, key, JSON_REAL, where, err))
        return -1;
    *out = json_number_value(value);
    if (!isfinite(*out))
        return err_set(err, ERR_INPUT, "%s: '%s' is not finite", where, key);
    return 0;
}

json_t *json_real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

char *json_to_text(const json_t *root)
{
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(17);
    size_t len = json_dumpb(root, NULL, 0, flags);
    char *text = mem_grow(NULL, len + 2, 1);

    json_dumpb(root, text, len, flags);
    text[len] = '\n';
    text[len + 1] = '\0';
    return text;
}
