/* SPDX-License-Identifier: MIT */
#include "base/json_lists.h"

#include <string.h>

/* Deepest nesting of brackets that is read. Deeper texts, which jansson may
 * refuse, are left to json_parse. */
#define MAX_DEPTH 1000

/* A position in a text. */
struct scan {
    const char *pos, *end;
};

static void skip_space(struct scan *scan)
{
    while (scan->pos < scan->end && memchr(" \t\r\n", *scan->pos, 4))
        scan->pos++;
}

/* Skips a character after spaces. Returns false if another one comes. */
static bool skip_char(struct scan *scan, char c)
{
    skip_space(scan);
    if (scan->pos == scan->end || *scan->pos != c)
        return false;
    scan->pos++;
    return true;
}

/* Skips the rest of a string, after its opening quote. Returns false if it does
 * not end. */
static bool skip_string(struct scan *scan)
{
    while (scan->pos < scan->end && *scan->pos != '"')
        scan->pos += *scan->pos == '\\' ? 2 : 1;
    return scan->pos++ < scan->end;
}

/* Skips a value up to the comma or bracket that follows it. Counts the commas
 * between the value's own elements. Only quotes, brackets and commas are looked
 * at; jansson checks the rest. Returns false if the value does not end. */
static bool skip_value(struct scan *scan, size_t *n_commas)
{
    size_t depth = 0;

    *n_commas = 0;
    for (; scan->pos < scan->end; scan->pos++) {
        switch (*scan->pos) {
        case '"':
            scan->pos++;
            if (!skip_string(scan))
                return false;
            scan->pos--;
            break;
        case '[':
        case '{':
            if (++depth > MAX_DEPTH)
                return false;
            break;
        case ']':
        case '}':
            if (!depth)
                return true;
            depth--;
            break;
        case ',':
            if (!depth)
                return true;
            *n_commas += depth == 1;
            break;
        default:
            break;
        }
    }
    return false;
}

/* Returns the list whose key is the string from `key` to `end`, or NULL. */
static struct json_list *list_of(struct json_list *lists, size_t n,
                                 const char *key, const char *end)
{
    const size_t len = (size_t)(end - key);

    for (size_t i = 0; i < n; i++)
        if (strlen(lists[i].key) == len && !memcmp(lists[i].key, key, len))
            return &lists[i];
    return NULL;
}

/* Takes the elements of a list out of the text before `scan`, which is at the
 * end of the list. Returns false if it has none. */
static bool take(struct json_list *list, const char *begin,
                 const struct scan *scan, size_t n_commas)
{
    struct scan inner = {begin, scan->pos};

    if (!skip_char(&inner, '['))
        return false;
    while (inner.end > inner.pos && inner.end[-1] != ']')
        inner.end--;
    if (inner.end == inner.pos)
        return false;
    inner.end--;
    list->text = inner.pos;
    list->end = inner.end;
    skip_space(&inner);
    list->n_apart = inner.pos == inner.end ? 0 : n_commas + 1;
    return true;
}

/* Copies the members of a document to `out`, without the elements of its
 * lists. Returns false if the text is not an object, or if a list occurs
 * twice. */
static bool leave_out(struct buf *out, struct json_list *lists, size_t n,
                      const char *text, size_t len)
{
    struct scan scan = {text, text + len};
    const char *copied = text, *key, *end, *value;
    struct json_list *list;
    size_t n_commas;

    if (!skip_char(&scan, '{'))
        return false;
    do {
        if (!skip_char(&scan, '"'))
            return false;
        key = scan.pos;
        if (!skip_string(&scan))
            return false;
        end = scan.pos - 1;
        if (!skip_char(&scan, ':'))
            return false;
        value = scan.pos;
        if (!skip_value(&scan, &n_commas))
            return false;
        list = list_of(lists, n, key, end);
        if (!list)
            continue;
        if (list->text || !take(list, value, &scan, n_commas))
            return false;
        buf_add(out, copied, (size_t)(list->text - copied));
        copied = list->end;
    } while (skip_char(&scan, ','));
    buf_add(out, copied, (size_t)(text + len - copied));
    return true;
}

int json_parse_but(json_t **root, struct json_list *lists, size_t n,
                   const char *text, size_t len)
{
    struct buf rest = {0};

    *root = NULL;
    if (leave_out(&rest, lists, n, text, len))
        *root = json_loadb(rest.data, rest.len, JSON_REJECT_DUPLICATES, NULL);
    buf_release(&rest);
    return *root ? 0 : -1;
}

int place_long_list(struct json_list *list, const struct json_place *place,
                    struct err *err)
{
    if (place_list(&list->parsed, place, list->key, err))
        return -1;
    list->n = list->text || list->make ? list->n_apart
                                       : json_array_size(list->parsed);
    return 0;
}

/* Parses the next element of the text. Returns NULL if it is not valid. */
static json_t *parse_next(struct json_list *list)
{
    struct scan scan = {list->text, list->end};
    const bool is_last = list->n_read == list->n;
    json_t *element;
    size_t n_commas;

    if (!skip_value(&scan, &n_commas))
        scan.pos = list->end;
    if (is_last ? scan.pos != list->end : *scan.pos != ',')
        return NULL;
    element = json_loadb(list->text, (size_t)(scan.pos - list->text),
                         JSON_REJECT_DUPLICATES, NULL);
    list->text = is_last ? list->end : scan.pos + 1;
    return element;
}

int place_next(struct json_place *out, struct json_list *list,
               const struct json_place *place, struct err *err)
{
    const size_t i = list->n_read;

    list->n_read++;
    if (!list->text && !list->make)
        return place_element(out, place, list->key, list->parsed, i, err);
    json_decref(list->element);
    list->element = list->make ? list->make(list->ctx, i) : parse_next(list);
    if (!list->element)
        return place_error(place, err, "%s[%zu] is not valid JSON", list->key,
                           i);
    return place_value(out, place, list->key, i, list->element, err);
}

void json_list_release(struct json_list *list)
{
    json_decref(list->element);
    list->element = NULL;
}
