/* SPDX-License-Identifier: MIT */
#include "costmodel/modelfile/model_file.h"

#include "base/file.h"
#include "base/file_write.h"
#include "base/hash.h"
#include "base/version.h"
#include "costmodel/modelfile/model_json.h"
#include "costmodel/modelfile/net_json.h"

#include <math.h>
#include <string.h>

static const unsigned char magic[8] = {0x89, 'N', 'S', 'H',
                                       'A',  'R', 'D', '\n'};

/* Layout of the first bytes of a model file. The bytes are copied to and from
 * memory unchanged. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "a model file holds little-endian numbers");
struct prefix {
    unsigned char magic[8];
    uint32_t version, n_header;
    uint64_t n_params;
};
#define HASH_BYTES sizeof(uint64_t)
#define ALIGNMENT 64

void model_to_bytes(struct model *model, const char **data, size_t *len,
                    struct arena *arena)
{
    json_t *root = model_to_json(model);
    char *header = json_to_text(root), *out;
    const size_t n_text = strlen(header), n_params = model->mlp.n_params;
    const size_t n_padded = (sizeof(struct prefix) + n_text + ALIGNMENT - 1) /
                            ALIGNMENT * ALIGNMENT;
    const size_t n_hashed = n_padded + n_params * sizeof(float);
    struct prefix prefix = {.version = model->products.n
                                           ? MODEL_VERSION
                                           : MODEL_VERSION_WITHOUT_PRODUCTS,
                            .n_header = (uint32_t)(n_padded - sizeof(prefix)),
                            .n_params = n_params};

    memcpy(prefix.magic, magic, sizeof(magic));
    out = arena_alloc(arena, n_hashed + HASH_BYTES, 1);
    memset(out, ' ', n_padded);
    memcpy(out, &prefix, sizeof(prefix));
    memcpy(out + sizeof(prefix), header, n_text);
    if (n_params)
        memcpy(out + n_padded, model->mlp.params, n_params * sizeof(float));
    model->hash = hash_bytes(out, n_hashed, 0);
    memcpy(out + n_hashed, &model->hash, HASH_BYTES);
    *data = out;
    *len = n_hashed + HASH_BYTES;
    mem_free(header);
    json_decref(root);
}

/* Checks everything in a model file except header and weights: magic, version,
 * lengths and checksum. */
static int read_frame(struct prefix *prefix, uint64_t *hash, const char *data,
                      size_t len, const char *where, struct err *err)
{
    uint64_t want;

    if (len < sizeof(magic) || memcmp(data, magic, sizeof(magic)))
        return err_input(err, "%s: not a model file (it does not start as one)",
                         where);
    if (len < sizeof(*prefix) + HASH_BYTES)
        return err_input(err, "%s: truncated to %zu bytes", where, len);
    memcpy(prefix, data, sizeof(*prefix));
    if (prefix->version < MODEL_OLDEST_VERSION ||
        prefix->version > MODEL_VERSION)
        return err_input(
            err,
            "%s: was written in model format %u, this program reads %d to %d",
            where, prefix->version, MODEL_OLDEST_VERSION, MODEL_VERSION);
    if (prefix->n_header > MODEL_MAX_HEADER || prefix->n_params > UINT32_MAX)
        return err_input(
            err,
            "%s: its header has impossible sizes: %u bytes and %llu weights",
            where, prefix->n_header, (unsigned long long)prefix->n_params);
    want = sizeof(*prefix) + prefix->n_header +
           prefix->n_params * sizeof(float) + HASH_BYTES;
    if (len != want)
        return err_input(err, "%s: %s: %zu bytes instead of %llu", where,
                         len < want ? "truncated" : "too long", len,
                         (unsigned long long)want);
    *hash = hash_bytes(data, len - HASH_BYTES, 0);
    if (memcmp(hash, data + len - HASH_BYTES, HASH_BYTES))
        return err_input(err, "%s: damaged: the checksum does not match",
                         where);
    return 0;
}

static int read_weights(struct model *model, const char *weights,
                        size_t n_weights, const char *where,
                        struct arena *arena, struct err *err)
{
    struct mlp *mlp = &model->mlp;
    const struct mlp_shape shape = mlp->shape;

    if (shape.n_embed)
        mlp_init(mlp, &shape, arena);
    if (n_weights != mlp->n_params)
        return err_input(err, "%s: has %zu weights, but its shape needs %zu",
                         where, n_weights, mlp->n_params);
    for (size_t i = 0; i < n_weights; i++) {
        memcpy(&mlp->params[i], weights + i * sizeof(float), sizeof(float));
        if (!isfinite(mlp->params[i]))
            return err_input(err, "%s: weight %zu is not a finite number",
                             where, i);
    }
    if (shape.is_monotone && !mlp_is_monotone(mlp))
        return err_input(err,
                         "%s: says that its net is monotone, but weights of "
                         "its head are negative",
                         where);
    return 0;
}

/* Part of the largest header length (MODEL_MAX_HEADER) that is kept free. A
 * header may become longer when it is formatted again, but never by this much.
 * Its texts keep their length. */
#define MAX_LAYOUT_BYTES (MODEL_MAX_HEADER / 4)

static int check_can_be_written(const struct model *model, size_t n_header,
                                const char *where, struct err *err)
{
    json_t *root;
    char *header;
    size_t n_text;

    if (n_header <= MODEL_MAX_HEADER - MAX_LAYOUT_BYTES)
        return 0;
    root = model_to_json(model);
    header = json_to_text(root);
    n_text = strlen(header);
    mem_free(header);
    json_decref(root);
    if (n_text <= MODEL_MAX_HEADER - ALIGNMENT)
        return 0;
    return err_input(
        err, "%s: the texts in its header are too long to be written back",
        where);
}

int model_parse(struct model *model, const char *data, size_t len,
                const char *where, struct arena *arena, struct err *err)
{
    struct prefix prefix = {0};
    json_t *root = NULL;
    int rc;

    memset(model, 0, sizeof(*model));
    if (read_frame(&prefix, &model->hash, data, len, where, err))
        return -1;
    model->format = prefix.version;
    data += sizeof(prefix);
    rc = json_parse(&root, data, prefix.n_header, where, err) ||
         model_from_json(model, root, where, arena, err) ||
         read_weights(model, data + prefix.n_header, prefix.n_params, where,
                      arena, err) ||
         check_can_be_written(model, prefix.n_header, where, err);
    json_decref(root);
    return rc ? -1 : 0;
}

int model_load(struct model *model, const char *path, struct arena *arena,
               struct err *err)
{
    const char *data;
    size_t len;

    if (file_read(&data, &len, path, arena, err))
        return -1;
    return model_parse(model, data, len, path, arena, err);
}

/* Checks that the bytes are a valid model file; used as a `file_check`. */
static int check_bytes(const char *data, size_t len, const char *where,
                       struct arena *arena, struct err *err)
{
    struct model model;

    return model_parse(&model, data, len, where, arena, err);
}

int model_save(struct model *model, const char *path, struct err *err)
{
    struct arena scratch = {0};
    const char *data;
    size_t len;
    int rc;

    model_to_bytes(model, &data, &len, &scratch);
    rc = file_write_checked(path, data, len, check_bytes, err);
    arena_release(&scratch);
    return rc;
}

/* Names of the layers of a compute net, in the order of struct mlp. */
static const char *const layer_names[] = {"t_hidden.0", "t_hidden.1",
                                          "c_hidden.0", "c_hidden.1"};

static int check_layers(const struct net_file *file, struct err *err)
{
    bool fits = file->n_layers == MLP_LAYERS;

    for (uint32_t k = 0; k < MLP_LAYERS && fits; k++)
        fits = !strcmp(file->layers[k].name, layer_names[k]);
    if (!fits || file->layers[1].n_out > MODEL_MAX_EMBED ||
        file->layers[3].n_out != 1)
        return err_input(err,
                         "%s: a model needs the layers %s, %s (at most %d "
                         "outputs), %s and %s (one output)",
                         file->path, layer_names[0], layer_names[1],
                         MODEL_MAX_EMBED, layer_names[2], layer_names[3]);
    return 0;
}

static void take_net(struct model *model, const struct net_file *file,
                     struct arena *arena)
{
    const struct mlp_layer *layers = file->layers;
    const struct mlp_shape shape = {
        layers[0].n_in, layers[0].n_out, layers[1].n_out, layers[2].n_out, 0,
        false};

    mlp_init(&model->mlp, &shape, arena);
    for (int k = 0; k < MLP_LAYERS; k++) {
        const struct mlp_layer *to = &model->mlp.layers[k];

        memcpy(to->weight, layers[k].weight,
               (size_t)to->n_out * to->n_in * sizeof(*to->weight));
        memcpy(to->bias, layers[k].bias, to->n_out * sizeof(*to->bias));
    }
}

int model_import(struct model *model, const char *dir, struct arena *arena,
                 struct err *err)
{
    struct net_file file = {0};
    uint64_t hash = 0;

    *model = (struct model){
        .setting = {.device = "reference net", .isa = "unknown"},
        .ranges = {{{PRECISION_FP32, OPTIMIZER_SGD, 65536, 65536, 0}}, 1},
        .basis = BASIS_MODELLED,
        .source = "imported from a reference net",
        .training = {.version = NEUROSHARD_VERSION,
                     .build = build_id,
                     .loss = "squared",
                     .measured_from = "",
                     .measured_to = ""},
    };
    if (net_file_read_compute(&file, &model->features, dir, &hash, arena,
                              err) ||
        check_layers(&file, err))
        return -1;
    take_net(model, &file, arena);
    return 0;
}
