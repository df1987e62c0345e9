/* SPDX-License-Identifier: MIT */
#include "costmodel/net_json.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"

static int read_floats(float **out, const json_t *object, const char *key,
                       size_t n, const char *where, struct arena *arena,
                       struct err *err)
{
    json_t *list = NULL;

    if (json_member(&list, object, key, JSON_ARRAY, where, err))
        return -1;
    if (json_array_size(list) != n)
        return err_set(err, ERR_INPUT, "%s: '%s' has %zu numbers, not %zu",
                       where, key, json_array_size(list), n);
    *out = ARENA_NEW(arena, float, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, i);

        (*out)[i] = (float)json_number_value(value);
        if (!json_is_number(value) || !isfinite((*out)[i]))
            return err_set(err, ERR_INPUT,
                           "%s: '%s' holds no finite number at position %zu",
                           where, key, i);
    }
    return 0;
}

static int read_layer(struct net_file *file, const json_t *object,
                      struct arena *arena, struct err *err)
{
    struct fast_mlp_layer *layer = &file->layers[file->n_layers];
    uint64_t n_in, n_out;
    float *weight = NULL, *bias = NULL;

    if (json_member_string(&file->names[file->n_layers], object, "name",
                           file->path, err) ||
        json_member_u64(&n_in, object, "inp", FAST_MLP_MAX_WIDTH, file->path,
                        err) ||
        json_member_u64(&n_out, object, "out", FAST_MLP_MAX_WIDTH, file->path,
                        err))
        return -1;
    if (!n_in || !n_out)
        return err_set(err, ERR_INPUT, "%s: layer '%s' is empty", file->path,
                       file->names[file->n_layers]);
    if (read_floats(&weight, object, "weight", n_in * n_out, file->path, arena,
                    err) ||
        read_floats(&bias, object, "bias", n_out, file->path, arena, err))
        return err_prefix(err, "layer '%s'", file->names[file->n_layers]);
    *layer = (struct fast_mlp_layer){.n_in = (uint32_t)n_in,
                                     .n_out = (uint32_t)n_out,
                                     .weight = weight,
                                     .bias = bias,
                                     .relu = true};
    file->n_layers++;
    return 0;
}

static int read_layers(struct net_file *file, struct arena *arena,
                       struct err *err)
{
    json_t *list = NULL;
    size_t n;

    if (json_member(&list, file->root, "layers", JSON_ARRAY, file->path, err))
        return -1;
    n = json_array_size(list);
    if (!n || n > FAST_MLP_MAX_LAYERS)
        return err_set(err, ERR_INPUT, "%s: a net has 1 to %d layers, not %zu",
                       file->path, FAST_MLP_MAX_LAYERS, n);
    for (size_t k = 0; k < n; k++) {
        const json_t *object = json_array_get(list, k);
        uint32_t want = k ? file->layers[k - 1].n_out : file->n_inputs;

        if (read_layer(file, object, arena, err))
            return -1;
        if (file->layers[k].n_in != want)
            return err_set(err, ERR_INPUT,
                           "%s: layer '%s' takes %u inputs where %u arrive",
                           file->path, file->names[k], file->layers[k].n_in,
                           want);
    }
    return 0;
}

static int read_scaling(struct net_file *file, struct arena *arena,
                        struct err *err)
{
    if (read_floats(&file->mean, file->root, "feature_means", file->n_inputs,
                    file->path, arena, err) ||
        read_floats(&file->std, file->root, "feature_stds", file->n_inputs,
                    file->path, arena, err))
        return -1;
    for (uint32_t i = 0; i < file->n_inputs; i++)
        if (!(file->std[i] > 0))
            return err_set(err, ERR_INPUT,
                           "%s: 'feature_stds' must be positive, not %g at "
                           "position %u",
                           file->path, (double)file->std[i], i);
    return 0;
}

/* Which feature each input is; every feature must be there once. */
static int read_features(uint32_t *inputs, const struct net_file *file,
                         const char *const *features, struct err *err)
{
    bool seen[NET_MAX_INPUTS] = {false};
    json_t *list = NULL;

    if (json_member(&list, file->root, "features", JSON_ARRAY, file->path, err))
        return -1;
    if (json_array_size(list) != file->n_inputs)
        return err_set(err, ERR_INPUT, "%s: 'features' has %zu names, not %u",
                       file->path, json_array_size(list), file->n_inputs);
    for (uint32_t i = 0; i < file->n_inputs; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        uint32_t f = 0;

        while (name && f < file->n_inputs && strcmp(name, features[f]) != 0)
            f++;
        if (!name || f == file->n_inputs || seen[f])
            return err_set(err, ERR_INPUT,
                           "%s: feature '%s' at position %u is unknown or "
                           "there twice",
                           file->path, name ? name : "(no text)", i);
        seen[f] = true;
        inputs[i] = f;
    }
    return 0;
}

int net_file_read(struct net_file *file, uint32_t *inputs,
                  const char *const *features, uint64_t *hash,
                  struct arena *arena, struct err *err)
{
    const char *text;
    size_t len;

    if (file_read(&text, &len, file->path, arena, err) ||
        json_parse(&file->root, text, len, file->path, err))
        return -1;
    if (!json_is_object(file->root))
        return err_set(err, ERR_INPUT, "%s: a net is a JSON object",
                       file->path);
    *hash = hash_bytes(text, len, *hash);
    if (read_features(inputs, file, features, err) ||
        read_scaling(file, arena, err) || read_layers(file, arena, err))
        return -1;
    return 0;
}

void net_file_release(struct net_file *file)
{
    json_decref(file->root);
    file->root = NULL;
}
