/* SPDX-License-Identifier: MIT */
#include "base/json_place.h"

#include <stddef.h>

#include "base/json.h"
#include "tests/tap.h"

struct things {
    uint32_t few;
    uint64_t many;
    double part;
    bool is_so;
    const char *name, *hash;
};

static const struct place_field fields[] = {
    {"few", PLACE_U32, true, offsetof(struct things, few), 1, 7},
    {"many", PLACE_U64, false, offsetof(struct things, many), 0, 0x1p64},
    {"part", PLACE_DOUBLE, false, offsetof(struct things, part), -1, 0.5},
    {"is_so", PLACE_BOOL, false, offsetof(struct things, is_so), 0, 0},
    {"name", PLACE_TEXT, false, offsetof(struct things, name), 0, 0},
    {"hash", PLACE_HASH, false, offsetof(struct things, hash), 0, 0},
};

/* Each value in the place of few's, and what is said of it by a strict reader
 * and by another. */
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
        rc = PLACE_FIELDS(&things, &place, fields, NULL, &err);
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
                     !place_root(&place, root, "f", &err) &&
                     !PLACE_FIELDS(&things, &place, fields, arena, &err);

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

/* A place says the whole way. */
static void test_places(void)
{
    static const char text[] = "{\"a\": {\"list\": [1, {\"kind\": \"dog\"}]}}";
    static const char *const kinds[] = {"cat", "cow"};
    struct json_place root_place, a, item;
    const json_t *list = NULL;
    struct err err = {0};
    json_t *root = NULL;
    double x;
    int kind;

    if (!ok(!json_parse(&root, text, strlen(text), "f", &err) &&
                !place_root(&root_place, root, "f", &err) &&
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
    ok(place_choice(&kind, &item, "kind", kinds, 2, &err), "no such kind");
    is_str(err.msg, "f: a.list[1].kind must be one of cat, cow", "says so");
    json_decref(root);
}

int main(void)
{
    struct arena arena;

    arena_init(&arena);
    test_whole_numbers();
    test_fields(&arena);
    test_places();
    arena_release(&arena);
    return tap_done();
}
