/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include "tests/tap.h"

static void test_rejected(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"a\": 1,\n\"a\": 2}",
         "f.json:2: not valid JSON: duplicate object key near '\"a\"'"},
        {"", "f.json:1: not valid JSON: '[' or '{' expected near end of file"},
        {"[1,\n2\n", "f.json:3: not valid JSON: ']' expected near end of file"},
        {"[NaN]", "f.json:1: not valid JSON: invalid token near 'NaN'"},
        {"[1e999]", "f.json:1: not valid JSON: real number overflow near "
                    "'1e999'"},
        {"[\"a\033[31m", "f.json:1: not valid JSON: control character 0x1b "
                         "near '\"a'"},
        {"[\033\177]",
         "f.json:1: not valid JSON: invalid token near '\\u001b'"},
        {"[\177]", "f.json:1: not valid JSON: invalid token near '\\u007f'"},
        {"[1] x", "f.json:1: not valid JSON: end of file expected near 'x'"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        json_t *root = NULL;

        is_i64(json_parse(&root, cases[i].text, strlen(cases[i].text), "f.json",
                          &err),
               -1, "refused");
        is_i64(err.code, ERR_INPUT, "as bad input");
        is_str(err.msg, cases[i].message, "with the line and the reason");
        ok(!root, "and nothing to release");
    }
}

static void test_members(const json_t *root)
{
    struct err err = {0};
    const char *s = NULL;
    json_t *list = NULL;
    uint64_t n = 0;
    double x = 0;

    ok(!json_member_u64(&n, root, "n", 7, "f", &err) && n == 7, "u64");
    ok(json_member_u64(&n, root, "n", 6, "f", &err), "too large");
    is_str(err.msg, "f: 'n' is 7, outside 0 to 6", "says so");
    ok(json_member_u64(&n, root, "negative", 6, "f", &err), "negative");
    is_str(err.msg, "f: 'negative' is -1, outside 0 to 6", "says so");
    ok(json_member_u64(&n, root, "x", 6, "f", &err), "a fraction");
    is_str(err.msg, "f: 'x' must be a whole number, not a number", "says so");
    ok(!json_member_double(&x, root, "x", "f", &err) && x > 0.0999 &&
           x < 0.1001,
       "double");
    ok(!json_member_double(&x, root, "n", "f", &err) && x > 6.9 && x < 7.1,
       "a whole number is a double too");
    ok(!json_member_string(&s, root, "s", "f", &err), "string");
    is_str(s, "text", "its content");
    ok(json_member_string(&s, root, "none", "f", &err), "missing");
    is_str(err.msg, "f: 'none' is missing", "says so");
    ok(json_member_string(&s, root, "n", "f", &err), "mistyped");
    is_str(err.msg, "f: 'n' must be a string, not a whole number", "says so");
    ok(!json_member(&list, root, "list", JSON_ARRAY, "f", &err), "list");
    ok(json_member(&list, root, "list", JSON_OBJECT, "f", &err), "mistyped");
    is_str(err.msg, "f: 'list' must be an object, not a list", "says so");
    ok(json_member_string(&s, list, "none", "f", &err),
       "a member of what is no object is missing");
    ok(!json_member(&list, root, "no", JSON_TRUE, "f", &err),
       "JSON_TRUE asks for any boolean");
    ok(!json_member(&list, root, "null", JSON_NULL, "f", &err), "null");
}

static void test_text(void)
{
    static const double values[] = {0.1, 1.0 / 3, 1e-300, 4.9e-324, 1e15};
    json_t *list = json_array(), *again = NULL;
    struct err err = {0};
    bool same = true;
    char *text;

    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        json_array_append_new(list, json_real(values[i]));
    text = json_to_text(list);
    ok(text[strlen(text) - 1] == '\n' && text[strlen(text) - 2] == ']',
       "text ends in one newline");
    ok(!json_parse(&again, text, strlen(text), "f", &err), "reads back");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        double x = json_real_value(json_array_get(again, i));

        same = same && !memcmp(&x, &values[i], sizeof x);
    }
    ok(same, "numbers read back the same");
    free(text);
    json_decref(again);
    json_decref(list);
}

int main(void)
{
    const char *text = "{\"n\": 7, \"negative\": -1, \"x\": 0.1, \"s\": "
                       "\"text\", \"list\": [], \"no\": false, \"null\": null}";
    struct err err = {0};
    json_t *root = NULL;

    test_rejected();
    if (ok(!json_parse(&root, text, strlen(text), "f", &err), "parses"))
        test_members(root);
    json_decref(root);
    test_text();
    return tap_done();
}
