/* SPDX-License-Identifier: MIT */
#include "base/json_lists.h"

#include "tests/tap.h"

/* Reads the list `a` of a text. Returns its members `n` as digits, and '!' if
 * the text is refused. */
static const char *digits(const char *text, struct arena *arena)
{
    struct json_list list = {.key = "a"};
    struct json_place root, place;
    struct err err = {0};
    json_t *document = NULL;
    struct buf out = {0};
    const char *found;
    uint64_t n;
    int rc = json_parse_but(&document, &list, 1, text, strlen(text)) ||
             place_root(&root, document, "f", arena, &err) ||
             place_long_list(&list, &root, &err);

    for (size_t i = 0; !rc && i < list.n; i++) {
        rc = place_next(&place, &list, &root, &err) ||
             place_u64(&n, &place, "n", 0, 9, &err);
        if (!rc)
            buf_printf(&out, "%u", (unsigned)n);
    }
    buf_printf(&out, "%s", rc ? "!" : "");
    found = arena_strdup(arena, out.data);
    buf_release(&out);
    json_list_release(&list);
    json_decref(document);
    return found;
}

static void test_texts(void)
{
    static const struct {
        const char *text, *digits, *why;
    } cases[] = {
        {"{\"a\": [{\"n\": 1},\n {\"n\": 2}], \"b\": 3}", "12", "a list"},
        {"{\"b\": \"[,\", \"a\": [{\"n\": 1, \"s\": \"]},\\\"{\"}]}", "1",
         "brackets in texts"},
        {"{\"a\": [{\"n\": 1, \"l\": [[1, 2], {}]}, {\"n\": 2}]}", "12",
         "lists inside"},
        {" {\"a\" : [ ] } ", "", "an empty list"},
        {"{\"\\u0061\": [{\"n\": 4}]}", "4", "an escaped key"},
        {"{\"x\": {\"a\": [{\"n\": 1}]}, \"a\": [{\"n\": 2}]}", "2",
         "only members of the document"},
        {"{\"b\": []}", "!", "no list"},
        {"{\"a\": {}}", "!", "an object instead"},
        {"{\"a\": [{\"n\": 1},]}", "1!", "a comma too many"},
        {"{\"a\": [{\"n\": 1} {\"n\": 2}]}", "!", "no comma"},
        {"{\"a\": [{\"n\": 1}] 2}", "!", "more behind the list"},
        {"{\"a\": [{\"n\": 1}][{\"n\": 1}]}", "!", "two lists"},
        {"{\"a\": [{\"n\": 1}], \"a\": []}", "!", "a list twice"},
        {"{\"a\": [{\"n\": 1, \"n\": 2}]}", "!", "a member twice"},
        {"{\"a\": [{\"n\": 1], {\"n\": 2}]}", "!", "mixed brackets"},
        {"{\"a\": [3]}", "!", "no objects"},
        {"{\"a\": [{\"n\": 1}", "!", "no end"},
        {"{\"a\": [{\"n\": 1}]", "!", "no end of the document"},
        {"{\"a\": [{\"n\": 1}]} x", "!", "more behind the document"},
        {"[]", "!", "no object"},
        {"", "!", "no text"},
    };
    struct arena arena = {0};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_str(digits(cases[i].text, &arena), cases[i].digits, cases[i].why);
    arena_release(&arena);
}

static json_t *make(const void *ctx, size_t i)
{
    return json_pack("{s:i}", "n", (int)i + *(const int *)ctx);
}

/* The elements may come from a function. */
static void test_made(void)
{
    const int first = 3;
    struct json_list list = {
        .key = "a", .make = make, .ctx = &first, .n_apart = 2};
    json_t *document = json_pack("{s:[]}", "a");
    struct json_place root, place;
    struct arena arena = {0};
    struct err err = {0};
    uint64_t n = 0, sum = 0;

    ok(!place_root(&root, document, "f", &arena, &err) &&
           !place_long_list(&list, &root, &err),
       "a list that is made");
    is_i64((int64_t)list.n, 2, "with its length");
    for (size_t i = 0; i < list.n; i++)
        if (!place_next(&place, &list, &root, &err) &&
            !place_u64(&n, &place, "n", 0, 9, &err))
            sum += n;
    is_i64((int64_t)sum, 7, "and its elements");
    json_list_release(&list);
    json_decref(document);
    arena_release(&arena);
}

int main(void)
{
    test_texts();
    test_made();
    return tap_done();
}
