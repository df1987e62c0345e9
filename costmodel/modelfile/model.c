/* SPDX-License-Identifier: MIT */
#include "costmodel/modelfile/model.h"

#include <inttypes.h>
#include <string.h>

const char *const model_kind_names[] = {
    [MODEL_ROOFLINE] = "fitted roofline",
    [MODEL_NET] = "net",
    [MODEL_ROOFLINE_NET] = "net on a fitted roofline",
    [MODEL_MONOTONE] = "monotone net on a fitted roofline",
};

enum model_kind model_kind(const struct model *model)
{
    if (!model->estimate.gpu.name)
        return MODEL_NET;
    if (!model->mlp.n_params)
        return MODEL_ROOFLINE;
    return model->estimate.is_monotone ? MODEL_MONOTONE : MODEL_ROOFLINE_NET;
}

const char *model_kind_text(const struct model *model, struct arena *arena)
{
    const char *gpu = model->estimate.gpu.name;

    return arena_printf(arena, "%s%s%s", model_kind_names[model_kind(model)],
                        gpu ? " of " : "", gpu ? gpu : "");
}

size_t range_list_find(const struct range_list *ranges,
                       enum precision precision, enum optimizer optimizer)
{
    size_t i = 0;

    while (i < ranges->n && (ranges->items[i].precision != precision ||
                             ranges->items[i].optimizer != optimizer))
        i++;
    return i;
}

void range_list_add(struct range_list *ranges,
                    const struct sample_setting *setting)
{
    const uint32_t batch = setting->batch;
    const size_t i =
        range_list_find(ranges, setting->precision, setting->optimizer);
    struct model_range *range = &ranges->items[i];

    if (i == ranges->n)
        ranges->items[ranges->n++] = (struct model_range){
            setting->precision, setting->optimizer, batch, batch, 0};
    range->batch_min = (uint32_t)min_u64(range->batch_min, batch);
    range->batch_max = (uint32_t)max_u64(range->batch_max, batch);
    range->n_samples++;
}

void model_add_environment(struct model *model,
                           const struct sample_setting *setting,
                           struct arena *arena)
{
    const char *driver = setting_known(setting->driver);
    const char *cuda = setting_known(setting->cuda);
    const char *host = setting_known(setting->host);
    struct model_environment *pos = model->environments;
    const struct model_environment *end = pos + model->n_environments;

    if (!*driver && !*cuda && !*host)
        return;
    while (pos < end && (strcmp(pos->driver, driver) ||
                         strcmp(pos->cuda, cuda) || strcmp(pos->host, host)))
        pos++;
    if (pos == end && model->n_environments == MODEL_MAX_ENVIRONMENTS)
        return;
    if (pos == end) {
        *pos = (struct model_environment){arena_strdup(arena, driver),
                                          arena_strdup(arena, cuda),
                                          arena_strdup(arena, host), 0};
        model->n_environments++;
    }
    pos->n_samples++;
}

const char *environment_text(const struct model_environment *environment,
                             struct arena *arena)
{
    const char *text = "";

    if (*environment->host)
        text = arena_printf(arena, "host %s", environment->host);
    /* On a CPU, the name of the operating system is stored as the driver. */
    if (*environment->driver)
        text = arena_printf(arena, "%s%s%s%s", text, *text ? ", " : "",
                            *environment->cuda ? "driver " : "",
                            environment->driver);
    if (*environment->cuda)
        text = arena_printf(arena, "%s%sCUDA %s", text, *text ? ", " : "",
                            environment->cuda);
    return text;
}

bool model_covers(const struct model *model, enum precision precision,
                  enum optimizer optimizer, double batch)
{
    const size_t i = range_list_find(&model->ranges, precision, optimizer);

    return i < model->ranges.n && batch >= model->ranges.items[i].batch_min &&
           batch <= model->ranges.items[i].batch_max;
}

const char *device_text(const struct sample_setting *setting,
                        struct arena *arena)
{
    if (!setting->n_threads)
        return arena_printf(arena, "%s, %s", setting->device, setting->isa);
    return arena_printf(arena, "%s, %u threads, %s", setting->device,
                        setting->n_threads, setting->isa);
}

const char *setting_text(const struct sample_setting *setting,
                         struct arena *arena)
{
    return arena_printf(arena, "%s, %s, %s, batch %u",
                        device_text(setting, arena),
                        precision_names[setting->precision],
                        optimizer_names[setting->optimizer], setting->batch);
}

/* Returns a text "a|b|c" with the names of the bits that are set in the
 * mask. */
static const char *join_names(unsigned mask, const char *const *names,
                              struct arena *arena)
{
    const char *list = "";

    for (unsigned i = 0; mask >> i; i++)
        if (mask >> i & 1)
            list =
                arena_printf(arena, "%s%s%s", list, *list ? "|" : "", names[i]);
    return list;
}

const char *model_setting_text(const struct model *model, struct arena *arena)
{
    unsigned precisions = 0, optimizers = 0;
    uint32_t batch_min = UINT32_MAX, batch_max = 0;
    const char *to = "";

    for (size_t i = 0; i < model->ranges.n; i++) {
        const struct model_range *range = &model->ranges.items[i];

        precisions |= 1u << range->precision;
        optimizers |= 1u << range->optimizer;
        batch_min = (uint32_t)min_u64(batch_min, range->batch_min);
        batch_max = (uint32_t)max_u64(batch_max, range->batch_max);
    }
    if (batch_min != batch_max)
        to = arena_printf(arena, " to %u", batch_max);
    return arena_printf(
        arena, "%s, %s, %s, batch %u%s", device_text(&model->setting, arena),
        join_names(precisions, precision_names, arena),
        join_names(optimizers, optimizer_names, arena), batch_min, to);
}

const char *choice_text(const struct model *model, struct arena *arena)
{
    const size_t n = model->choice.items[0].n;

    if (!model->choice.n)
        return "";
    if (model->training.n_folds == 1)
        return arena_printf(arena, ", judged by %zu samples for validation", n);
    return arena_printf(
        arena, ", judged by %" PRIu64 "-fold cross-validation on %zu samples",
        model->training.n_folds, n);
}

/* Finds the mean and deviation that scale input k of a net's head. The
 * logarithm of a total has those of its feature. Other inputs have MLP_LOG_MEAN
 * and MLP_LOG_STD in a monotone net, else 0 and 1. */
static void scaling_of(const struct model *model, size_t k, double *mean,
                       double *std)
{
    const size_t n_embed = model->mlp.shape.n_embed;
    const struct feature_set *totals = &model->estimate.totals;

    *mean = model->mlp.shape.is_monotone ? MLP_LOG_MEAN : 0;
    *std = model->mlp.shape.is_monotone ? MLP_LOG_STD : 1;
    if (k >= n_embed && k < n_embed + totals->n) {
        *mean = totals->items[k - n_embed].mean;
        *std = totals->items[k - n_embed].std;
    }
}

struct mlp_layer model_head_layer(const struct model *model,
                                  struct arena *arena)
{
    const struct mlp_layer *from = &model->mlp.layers[2];
    const size_t n_in = from->n_in;
    struct mlp_layer layer = *from;

    layer.weight = ARENA_NEW(arena, float, n_in * from->n_out);
    layer.bias = ARENA_NEW(arena, float, from->n_out);
    memcpy(layer.weight, from->weight, n_in * from->n_out * sizeof(float));
    for (size_t o = 0; o < from->n_out; o++) {
        double shift = (double)from->bias[o];

        for (size_t k = 0; k < n_in; k++) {
            double mean, std, w;

            scaling_of(model, k, &mean, &std);
            w = (double)from->weight[o * n_in + k] / std;
            layer.weight[o * n_in + k] = (float)w;
            shift -= w * mean;
        }
        layer.bias[o] = (float)shift;
    }
    return layer;
}
