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

static void test_print(void)
{
    struct buf out = {0};

    json_print(&out, json_string("a\n"));
    json_print(&out, json_pack("[f, b]", 1.0 / 3, 1));
    is_str(out.data, "\"a\\n\"[0.33333333333333331, true]",
           "values are appended in one line");
    buf_release(&out);
}

static void test_count(void)
{
    is_i64(json_count(INT64_MAX), INT64_MAX, "the largest count");
    is_i64(json_count(UINT64_MAX), INT64_MAX, "one that saturated");
}

int main(void)
{
    test_rejected();
    test_text();
    test_print();
    test_count();
    return tap_done();
}
