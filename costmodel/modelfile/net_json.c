/* SPDX-License-Identifier: MIT */
#include "costmodel/modelfile/net_json.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Members of a layer that are single values, with their ranges. (Numbers in the
 * lists of a layer must fit a float.) */
#define LAYER(member) MEMBER_OF(struct mlp_layer, member)
static const struct place_field layer_fields[] = {
    {"name", LAYER(name), true, 0, 0, NULL},
    {"inp", LAYER(n_in), true, 1, FAST_MLP_MAX_WIDTH, NULL},
    {"out", LAYER(n_out), true, 1, FAST_MLP_MAX_WIDTH, NULL},
};

/* Reads a list of n numbers that are at least `min`. */
static int read_floats(float **out, const struct json_place *place,
                       const char *key, size_t n, double min, struct err *err)
{
    const json_t *list;

    if (place_list_of(&list, place, key, n, "not", err))
        return -1;
    *out = ARENA_NEW(place->arena, float, n);
    for (size_t i = 0; i < n; i++) {
        double x;

        if (place_list_double(&x, place, key, list, i, min, (double)FLT_MAX,
                              err))
            return -1;
        (*out)[i] = (float)x;
    }
    return 0;
}

static int read_layer(struct mlp_layer *layer, const struct json_place *place,
                      uint32_t n_in, struct err *err)
{
    if (PLACE_FIELDS(layer, place, layer_fields, err))
        return -1;
    if (layer->n_in != n_in)
        return place_error(place, err,
                           "layer '%s' takes %u inputs, but gets %u",
                           layer->name, layer->n_in, n_in);
    layer->relu = true;
    if (read_floats(&layer->weight, place, "weight",
                    (size_t)n_in * layer->n_out, (double)-FLT_MAX, err))
        return -1;
    return read_floats(&layer->bias, place, "bias", layer->n_out,
                       (double)-FLT_MAX, err);
}

static int read_layers(struct net_file *file, const struct json_place *place,
                       struct err *err)
{
    uint32_t n_in = file->n_inputs;
    const json_t *list;
    size_t n;

    if (place_list(&list, place, "layers", err))
        return -1;
    n = json_array_size(list);
    if (!n || n > FAST_MLP_MAX_LAYERS)
        return place_error(place, err, "a net has 1 to %d layers, not %zu",
                           FAST_MLP_MAX_LAYERS, n);
    for (file->n_layers = 0; file->n_layers < n; file->n_layers++) {
        struct mlp_layer *layer = &file->layers[file->n_layers];
        struct json_place pos;

        if (place_element(&pos, place, "layers", list, file->n_layers, err) ||
            read_layer(layer, &pos, n_in, err))
            return -1;
        n_in = layer->n_out;
    }
    return 0;
}

/* Fills inputs[n]: for each input of the net, the index of its feature. Every
 * feature must occur once. */
static int read_features(uint32_t *inputs, uint32_t n,
                         const struct json_place *place,
                         const char *const *features, struct err *err)
{
    bool seen[NET_MAX_INPUTS] = {false};
    const json_t *list;

    if (place_list_of(&list, place, "features", n, "not", err))
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        uint32_t f = 0;

        while (name && f < n && strcmp(name, features[f]) != 0)
            f++;
        if (!name || f == n || seen[f])
            return place_error(
                place, err,
                "feature '%s' at position %u is unknown or given twice",
                name ? name : "(no text)", i);
        seen[f] = true;
        inputs[i] = f;
    }
    return 0;
}

int net_file_parse(struct net_file *file, const char *const *features,
                   const char *text, size_t len, struct arena *arena,
                   struct err *err)
{
    const uint32_t n = file->n_inputs;
    struct json_place place;
    json_t *root = NULL;
    int rc;

    rc = json_parse(&root, text, len, file->path, err) ||
         place_root(&place, root, file->path, arena, err);
    place.is_strict = true;
    rc = rc || read_features(file->inputs, n, &place, features, err) ||
         read_floats(&file->mean, &place, "feature_means", n, (double)-FLT_MAX,
                     err) ||
         read_floats(&file->std, &place, "feature_stds", n,
                     (double)FLT_TRUE_MIN, err) ||
         read_layers(file, &place, err);
    json_decref(root);
    return rc ? -1 : 0;
}

int net_file_read(struct net_file *file, const char *const *features,
                  uint64_t *hash, struct arena *arena, struct err *err)
{
    struct arena scratch = {0};
    const char *text;
    size_t len;
    int rc;

    rc = file_read(&text, &len, file->path, &scratch, err) ||
         net_file_parse(file, features, text, len, arena, err);
    if (!rc)
        *hash = hash_bytes(text, len, *hash);
    arena_release(&scratch);
    return rc ? -1 : 0;
}

int net_file_read_compute(struct net_file *file, struct feature_set *features,
                          const char *dir, uint64_t *hash, struct arena *arena,
                          struct err *err)
{
    struct feature_set published;
    const char *names[MAX_FEATURES];

    feature_set_init(&published, FEATURES_PUBLISHED);
    for (unsigned f = 0; f < published.n; f++)
        names[f] = published.items[f].name;
    file->path = arena_printf(arena, "%s/net_compute.json", dir);
    file->n_inputs = features->n = published.n;
    if (net_file_read(file, names, hash, arena, err))
        return -1;
    for (unsigned f = 0; f < published.n; f++) {
        struct feature *feature = &features->items[f];

        *feature = published.items[file->inputs[f]];
        feature->mean = (double)file->mean[f];
        feature->std = (double)file->std[f];
        feature->min = feature->max = NAN;
    }
    return 0;
}
