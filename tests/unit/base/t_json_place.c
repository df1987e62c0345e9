/* SPDX-License-Identifier: MIT */

#include "base/json.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>

enum kind { CAT, COW };
static const char *const kinds[] = {"cat", "cow", NULL};

struct things {
    enum kind kind;
    uint32_t few;
    uint64_t many;
    double part;
    bool is_so;
    const char *name, *hash;
};

#define THING(member) MEMBER_OF(struct things, member)
static const struct place_field fields[] = {
    {"few", THING(few), true, 1, 7, NULL},
    {"many", THING(many), false, 0, 0x1p64, NULL},
    {"part", THING(part), false, -1, 0.5, NULL},
    {"is_so", THING(is_so), false, 0, 0, NULL},
    {"name", THING(name), false, 0, 0, NULL},
    {"hash", MEMBER_HASH, offsetof(struct things, hash), false, 0, 0, NULL},
    {"kind", THING(kind), false, 0, 0, kinds},
};

static const struct place_field *const kind_field = &fields[6];

/* Puts each value into member `few` and compares the messages of a strict and a
 * tolerant reader. */
static void test_whole_numbers(void)
{
    static const struct {
        const char *value, *strict, *loose;
    } cases[] = {
        {"7", "", ""},
        {"8", "few is 8, outside 1 to 7", "few is 8, outside 1 to 7"},
        {"0", "few is 0, outside 1 to 7", "few is 0, outside 1 to 7"},
        {"-1", "few is -1, not a whole number >= 0",
         "few is -1, not a whole number >= 0"},
        {"1.5", "few is 1.5, not a whole number >= 0",
         "few is 1.5, not a whole number >= 0"},
        {"7.0", "few is 7, not a whole number >= 0", ""},
        {"\"7\"", "few must be a whole number, not a string", ""},
        {"\"07x\"", "few must be a whole number, not a string",
         "few must be a whole number, not a string"},
        {"null", "few must be a whole number, not null",
         "few must be a whole number, not null"},
        {"[7]", "few must be a whole number, not a list",
         "few must be a whole number, not a list"},
    };

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
        const char *want = i % 2 ? cases[i / 2].strict : cases[i / 2].loose;
        struct json_place place = {.source = "f", .is_strict = i % 2};
        json_t *object =
            json_pack("{so}", "few",
                      json_loads(cases[i / 2].value, JSON_DECODE_ANY, NULL));
        struct things things = {0};
        struct err err = {0};
        int rc;

        place.object = object;
        rc = PLACE_FIELDS(&things, &place, fields, &err);
        is_str(rc ? err.msg + strlen("f: ") : "", want, cases[i / 2].value);
        json_decref(object);
    }
}

static void test_fields(struct arena *arena)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"\"many\": \"18446744073709551615\", \"part\": 0.5, \"is_so\": true, "
         "\"name\": \"x y\", \"hash\": \"0123456789abcdef\"",
         ""},
        {"\"many\": null, \"part\": null, \"is_so\": null", ""},
        {"\"many\": \"18446744073709551616\"",
         "f: many must be a whole number, not a string"},
        {"\"part\": 0.6", "f: part is 0.59999999999999998, not in -1 to 0.5"},
        {"\"part\": \"0\"", "f: part must be a number, not a string"},
        {"\"is_so\": 1", "f: is_so must be true or false, not a number"},
        {"\"name\": [1]", "f: name must be a string, not a list"},
        {"\"name\": \"\\u001b\"", "f: name is '\\u001b', not printable text"},
        {"\"hash\": \"0123456789ABCDEF\"",
         "f: hash is '0123456789ABCDEF', not 16 hexadecimal digits"},
        {"\"kind\": \"cow\"", ""},
        {"\"kind\": \"dog\"", "f: kind must be one of cat, cow"},
        {"\"hash\": \"012\"", "f: hash is '012', not 16 hexadecimal digits"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *text =
            arena_printf(arena, "{\"few\": 1, %s}", cases[i].text);
        struct things things = {.many = 9};
        struct json_place place;
        struct err err = {0};
        json_t *root = NULL;
        bool taken = !json_parse(&root, text, strlen(text), "f", &err) &&
                     !place_root(&place, root, "f", arena, &err) &&
                     !PLACE_FIELDS(&things, &place, fields, &err);

        is_str(err.msg, cases[i].message, cases[i].text);
        ok(taken == !*cases[i].message, "and so it is");
        if (i == 0)
            ok(things.few == 1 && things.many == UINT64_MAX && things.is_so &&
                   !strcmp(things.name, "x y") &&
                   !strcmp(things.hash, "0123456789abcdef"),
               "all are there");
        if (i == 1)
            ok(things.many == 9, "null is as if it were not there");
        json_decref(root);
    }
}

/* Members are written in the order of the table and read back unchanged. Values
 * that JSON lacks are written as null, a string of digits, or a quoted word. */
static void test_writing(struct arena *arena)
{
    static const struct {
        struct things things;
        const char *text;
    } cases[] = {
        {{COW, 7, UINT64_MAX, 0.1, true, "a b", "0123456789abcdef"},
         "{\"few\": 7, \"many\": \"18446744073709551615\", \"part\": "
         "0.10000000000000001, \"is_so\": true, \"name\": \"a b\", \"hash\": "
         "\"0123456789abcdef\", \"kind\": \"cow\"}"},
        {{CAT, 1, INT64_MAX, NAN, false, "\x1b", NULL},
         "{\"few\": 1, \"many\": 9223372036854775807, \"part\": null, "
         "\"is_so\": false, \"name\": \"\\\\u001b\", \"hash\": null, "
         "\"kind\": \"cat\"}"},
    };
    json_t *list;

    for (size_t i = 0; i < 2; i++) {
        const struct things *want = &cases[i].things;
        struct things got = {.part = NAN};
        struct json_place place = {.source = "f", .arena = arena};
        json_t *object = json_object();
        struct err err = {0};
        char *text;

        PLACE_SET_FIELDS(object, want, fields);
        text = json_dumps(object, JSON_REAL_PRECISION(17));
        is_str(text, cases[i].text, "written");
        place.object = object;
        ok(!PLACE_FIELDS(&got, &place, fields, &err) && got.few == want->few &&
               got.many == want->many && got.kind == want->kind &&
               got.is_so == want->is_so &&
               !memcmp(&got.part, &want->part, sizeof(got.part)) &&
               !got.hash == !want->hash,
           "read back: %s", err.msg);
        free(text);
        json_decref(object);
    }
    list = PLACE_LIST_ROWS(&cases[0].things, 1, fields);
    is_i64((int64_t)json_array_size(list), 1, "a list of one");
    json_decref(list);
}

/* Messages contain the full path to a value. */
static void test_places(struct arena *arena)
{
    static const char text[] = "{\"a\": {\"list\": [1, {\"kind\": \"dog\"}]}}";
    struct json_place root_place, a, item;
    const json_t *list = NULL;
    struct err err = {0};
    json_t *root = NULL;
    double x;
    struct things things = {0};

    if (!ok(!json_parse(&root, text, strlen(text), "f", &err) &&
                !place_root(&root_place, root, "f", arena, &err) &&
                !place_object(&a, &root_place, "a", &err) &&
                !place_list(&list, &a, "list", &err) &&
                !place_element(&item, &a, "list", list, 1, &err),
            "goes down %s", err.msg))
        return;
    ok(place_object(&a, &root_place, "b", &err), "no such object");
    is_str(err.msg, "f: b is missing", "says so");
    ok(place_element(&item, &a, "list", list, 0, &err), "a number in the list");
    is_str(err.msg, "f: a.list[0] must be an object, not a number", "says so");
    ok(place_list_double(&x, &a, "list", list, 0, 2, 3, &err), "too small");
    is_str(err.msg, "f: a.list[0] is 1, not in 2 to 3", "says so");
    ok(place_fields(&things, &item, kind_field, 1, &err), "no such kind");
    is_str(err.msg, "f: a.list[1].kind must be one of cat, cow", "says so");
    json_decref(root);
}

int main(void)
{
    struct arena arena = {0};

    test_whole_numbers();
    test_fields(&arena);
    test_writing(&arena);
    test_places(&arena);
    arena_release(&arena);
    return tap_done();
}
