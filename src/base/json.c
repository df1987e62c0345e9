/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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

json_t *json_member(enum member_type type, const void *at)
{
    struct arena scratch = {0};
    const char *text;
    json_t *value;

    switch (type) {
    case MEMBER_U32:
        return json_integer(*(const uint32_t *)at);
    case MEMBER_U64:
        return json_whole(*(const uint64_t *)at);
    case MEMBER_REAL:
        return json_real_or_null(*(const double *)at);
    case MEMBER_BOOL:
        return json_boolean(*(const bool *)at);
    case MEMBER_TEXT:
    case MEMBER_HASH:
        break;
    }
    text = *(const char *const *)at;
    if (!text)
        return json_null();
    value = json_string(text_shown(text, &scratch)); /* so it is UTF-8 */
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
