/* SPDX-License-Identifier: MIT */
#include "costmodel/model_import.h"

#include "costmodel/net_json.h"

#include <string.h>

/* The layers of a compute net, in the order of struct mlp. */
static const char *const layer_names[] = {"t_hidden.0", "t_hidden.1",
                                          "c_hidden.0", "c_hidden.1"};

static int check_layers(const struct net_file *file, struct err *err)
{
    bool fits = file->n_layers == MLP_LAYERS;

    for (uint32_t k = 0; k < MLP_LAYERS && fits; k++)
        fits = !strcmp(file->layers[k].name, layer_names[k]);
    if (!fits || file->layers[1].n_out > MODEL_MAX_EMBED ||
        file->layers[3].n_out != 1)
        return err_set(err, ERR_INPUT,
                       "%s: a model takes the layers %s, %s (at most %d "
                       "outputs), %s and %s (one output)",
                       file->path, layer_names[0], layer_names[1],
                       MODEL_MAX_EMBED, layer_names[2], layer_names[3]);
    return 0;
}

static void take_net(struct model *model, const struct net_file *file,
                     struct arena *arena)
{
    const struct mlp_layer *layers = file->layers;
    const struct mlp_shape shape = {layers[0].n_in, layers[0].n_out,
                                    layers[1].n_out, layers[2].n_out, 0};

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

    memset(model, 0, sizeof(*model));
    if (net_file_read_compute(&file, &model->features, dir, &hash, arena,
                              err) ||
        check_layers(&file, err))
        return -1;
    take_net(model, &file, arena);
    model->setting.device = "reference net";
    model->setting.isa = "unknown";
    model->ranges.at[0] = (struct model_range){.precision = PRECISION_FP32,
                                               .optimizer = OPTIMIZER_SGD,
                                               .batch_min = 65536,
                                               .batch_max = 65536};
    model->ranges.n = 1;
    model->basis = BASIS_MODELLED;
    model->source = "imported from a reference net";
    model->training.version = NEUROSHARD_VERSION;
    model->training.loss = "squared";
    model->training.measured_from = model->training.measured_to = "";
    return 0;
}
