/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/json_lists.h"
#include "tests/fuzz/target.h"

/* Reads all elements of a list, and adds them to `out`. */
static bool read_all(json_t *out, struct json_list *list,
                     const struct json_place *root)
{
    struct json_place place;
    struct err err = {0};

    if (place_long_list(list, root, &err))
        return false;
    for (size_t i = 0; i < list->n; i++) {
        if (place_next(&place, list, root, &err))
            return false;
        json_array_append(out, (json_t *)(uintptr_t)place.object);
    }
    return true;
}

/* If the lists of a document can be read one element at a time, the document is
 * valid, and its elements are those that a parser of the whole text finds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_list lists[] = {{.key = "a"}, {.key = "b"}};
    const char *text = (const char *)data;
    json_t *root = NULL, *whole = NULL, *found[] = {json_array(), json_array()};
    struct arena arena = {0};
    struct json_place place;
    struct err err = {0};
    bool is_read = false;

    if (!json_parse_but(&root, lists, 2, text, size) &&
        !place_root(&place, root, "fuzz", &arena, &err))
        is_read = read_all(found[0], &lists[0], &place) &&
                  read_all(found[1], &lists[1], &place);
    for (size_t i = 0; i < 2; i++) {
        json_list_release(&lists[i]);
        if (is_read) {
            MUST(whole || !json_parse(&whole, text, size, "fuzz", &err));
            MUST(json_equal(found[i], json_object_get(whole, lists[i].key)));
        }
        json_decref(found[i]);
    }
    json_decref(whole);
    json_decref(root);
    arena_release(&arena);
    return 0;
}
