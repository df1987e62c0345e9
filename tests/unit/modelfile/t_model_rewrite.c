/* SPDX-License-Identifier: MIT */

/* A model file that can be read can be written and read again, with the same
 * bytes. The test takes the headers of the fuzzing corpus and replaces each
 * value in turn by values at and beyond the ends of ranges, or removes it. */
#include "costmodel/modelfile/model_file.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "tests/tap.h"

/* Contents of a model file: version, header and weights. */
struct parts {
    uint32_t version;
    json_t *header;
    const char *weights;
    uint64_t n_params;
};

static int take_apart(struct parts *parts, const char *path,
                      struct arena *arena, struct err *err)
{
    const char *data;
    uint32_t n_header;
    size_t len;

    if (file_read(&data, &len, path, arena, err))
        return -1;
    memcpy(&parts->version, data + 8, 4);
    memcpy(&n_header, data + 12, 4);
    memcpy(&parts->n_params, data + 16, 8);
    parts->weights = data + 24 + n_header;
    return json_parse(&parts->header, data + 24, n_header, path, err);
}

static const char *put_together(const struct parts *parts, size_t *len,
                                struct arena *arena)
{
    char *text =
        json_dumps(parts->header, JSON_COMPACT | JSON_REAL_PRECISION(17));
    const uint32_t n_header = (uint32_t)strlen(text);
    const size_t n_hashed = 24 + n_header + 4 * parts->n_params;
    char *out = arena_alloc(arena, n_hashed + 8, 1);
    uint64_t hash;

    memcpy(out, "\x89NSHARD\n", 8);
    memcpy(out + 8, &parts->version, 4);
    memcpy(out + 12, &n_header, 4);
    memcpy(out + 16, &parts->n_params, 8);
    memcpy(out + 24, text, n_header);
    memcpy(out + 24 + n_header, parts->weights, 4 * parts->n_params);
    hash = hash_bytes(out, n_hashed, 0);
    memcpy(out + n_hashed, &hash, 8);
    *len = n_hashed + 8;
    free(text);
    return out;
}

/* Outcome of reading, writing and reading a file again. */
enum fate { REFUSED, SAME_AGAIN, LOST, N_FATES };

static enum fate fate_of(const struct parts *parts, struct err *err)
{
    struct arena arena = {0};
    struct model model, again;
    const char *data, *first, *second;
    size_t len, first_len, second_len;
    enum fate fate = REFUSED;

    data = put_together(parts, &len, &arena);
    if (!model_parse(&model, data, len, "m", &arena, err)) {
        model_to_bytes(&model, &first, &first_len, &arena);
        fate = LOST;
        if (!model_parse(&again, first, first_len, "again", &arena, err)) {
            model_to_bytes(&again, &second, &second_len, &arena);
            if (first_len == second_len && !memcmp(first, second, first_len))
                fate = SAME_AGAIN;
        }
    }
    arena_release(&arena);
    return fate;
}

/* Values to try, as JSON; "" removes the node. */
static const char *const values[] = {
    "0",
    "-0.0",
    "1",
    "-1",
    "2",
    "0.001",
    "1e-9",
    "5e-324",
    "2.2250738585072014e-308",
    "100",
    "1000000",
    "1e6",
    "1e9",
    "4294967295",
    "4294967296",
    "9007199254740992",
    "9007199254740993",
    "1e15",
    "999999999999000000.0",
    "1e18",
    "9223372036854775807",
    "9.2233720368547758e18",
    "1e300",
    "1.7976931348623157e308",
    "true",
    "null",
    "\"\"",
    "\"\xc3\xa9\\n\\u0001\\u2028\"",
    "[]",
    "{}",
    "[0, 1e18]",
    "",
};

static const size_t n_values = sizeof values / sizeof *values;

/* Replaces the n-th node in the order of a walk by the value, counting *n down.
 * NULL removes the node. Returns true once it is replaced. */
static bool replace(json_t *node, size_t *n, json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;
    void *next;

    json_object_foreach_safe(node, next, key, member)
    {
        if (!(*n)--)
            return value ? !json_object_set(node, key, value)
                         : !json_object_del(node, key);
        if (replace(member, n, value))
            return true;
    }
    json_array_foreach(node, i, member)
    {
        if (!(*n)--)
            return value ? !json_array_set(node, i, value)
                         : !json_array_remove(node, i);
        if (replace(member, n, value))
            return true;
    }
    return false;
}

/* Tries n_tried of the values for each node, starting at a different value for
 * each node. */
static void try_values(const char *path, size_t n_tried)
{
    struct arena arena = {0};
    struct parts parts = {0};
    struct err err = {0};
    size_t n_fates[N_FATES] = {0};
    bool is_there = true;

    if (take_apart(&parts, path, &arena, &err)) {
        ok(0, "%s", err.msg);
        return;
    }
    for (size_t i = 0; is_there; i++)
        for (size_t k = 0; k < n_tried; k++) {
            const size_t v = (i * n_tried + k) % n_values;
            struct parts changed = parts;
            json_t *value = *values[v]
                                ? json_loads(values[v], JSON_DECODE_ANY, NULL)
                                : NULL;
            size_t n = i;
            enum fate fate;

            changed.header = json_deep_copy(parts.header);
            is_there = replace(changed.header, &n, value);
            fate = fate_of(&changed, &err);
            n_fates[fate]++;
            if (fate == LOST)
                printf("# value %zu of %s as %s: %s\n", i, path, values[v],
                       err.msg);
            json_decref(value);
            json_decref(changed.header);
        }
    ok(n_fates[SAME_AGAIN] && n_fates[REFUSED] && !n_fates[LOST],
       "%s: %zu are the same again, %zu refused, %zu lost", path,
       n_fates[SAME_AGAIN], n_fates[REFUSED], n_fates[LOST]);
    json_decref(parts.header);
    arena_release(&arena);
}

/* Tries texts that fit into the limit of a header, but not together with the
 * header's formatting. */
static void try_long_texts(const char *path)
{
    struct arena arena = {0};
    struct parts parts = {0};
    struct err err = {0};
    size_t n_fates[N_FATES] = {0};
    char *text = mem_alloc(MODEL_MAX_HEADER, 1);

    if (take_apart(&parts, path, &arena, &err)) {
        ok(0, "%s", err.msg);
        return;
    }
    memset(text, 'a', MODEL_MAX_HEADER - 1);
    for (size_t n = MODEL_MAX_HEADER - 4096; n < MODEL_MAX_HEADER; n += 128) {
        json_object_set_new(parts.header, "source", json_stringn(text, n));
        n_fates[fate_of(&parts, &err)]++;
    }
    ok(n_fates[SAME_AGAIN] && n_fates[REFUSED] && !n_fates[LOST],
       "long texts: %zu are the same again, %zu refused, %zu lost",
       n_fates[SAME_AGAIN], n_fates[REFUSED], n_fates[LOST]);
    mem_free(text);
    json_decref(parts.header);
    arena_release(&arena);
}

int main(void)
{
    static const char *const names[] = {"with_comm", "roofline", "estimate",
                                        "intervals", "modelled"};
    char path[64];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "tests/fuzz/corpus/model/%s.nsm", names[i]);
        /* The first file is small and has a header line of version 1. */
        try_values(path, i ? tap_size(5, n_values) : n_values);
    }
    try_long_texts(path);
    return tap_done();
}
