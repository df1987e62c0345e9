/* SPDX-License-Identifier: MIT */
#include "costmodel/model_json.h"

#include <math.h>
#include <string.h>

#include "costmodel/fast_mlp.h"

#define MAX_COUNT (UINT64_C(1) << 53)

/* JSON has no NaN: what is not known is left out. */
static void set_real(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(object, key, json_real(value));
}

static void set_count(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void set_text(json_t *object, const char *key, const char *value)
{
    json_t *text = json_string(value ? value : "");

    /* a device's name need not be UTF-8 */
    json_object_set_new(object, key, text ? text : json_string("?"));
}

static json_t *setting_to_json(const struct sample_setting *setting)
{
    json_t *object = json_object();

    set_text(object, "device", setting->device);
    set_count(object, "threads", setting->n_threads);
    set_text(object, "isa", setting->isa);
    set_text(object, "precision", precision_name(setting->precision));
    set_text(object, "optimizer", optimizer_name(setting->optimizer));
    set_count(object, "batch", setting->batch);
    return object;
}

static json_t *features_to_json(const struct model *model)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < model->features.n; i++) {
        json_t *object = json_object();

        set_text(object, "name", feature_set_name(&model->features, i));
        set_real(object, "mean", model->mean[i]);
        set_real(object, "std", model->std[i]);
        set_real(object, "min", model->min[i]);
        set_real(object, "max", model->max[i]);
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *shape_to_json(const struct mlp_shape *shape)
{
    json_t *object = json_object();

    set_count(object, "hidden", shape->n_hidden);
    set_count(object, "embed", shape->n_embed);
    set_count(object, "head", shape->n_head);
    return object;
}

static json_t *training_to_json(const struct model_training *training)
{
    json_t *object = json_object();

    set_text(object, "version", training->version);
    set_text(object, "loss", training->loss);
    set_count(object, "seed", training->seed);
    set_count(object, "epochs", training->epochs);
    set_count(object, "best_epoch", training->best_epoch);
    set_count(object, "train", training->n_train);
    set_count(object, "validation", training->n_validation);
    set_count(object, "held_out", training->n_held_out);
    set_text(object, "measured_from", training->measured_from);
    set_text(object, "measured_to", training->measured_to);
    return object;
}

static json_t *errors_to_json(const struct model *model)
{
    json_t *list = json_array();

    for (size_t i = 0; i < model->n_errors; i++) {
        const struct errors *errors = &model->errors[i];
        json_t *object = json_object();

        set_text(object, "predictor", errors->name);
        set_count(object, "samples", errors->n);
        set_real(object, "mse_ms2", errors->mse);
        set_real(object, "mape", errors->mape);
        set_real(object, "median_ape", errors->median_ape);
        set_real(object, "kendall_tau", errors->kendall_tau);
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *comm_to_json(const struct comm_model *comm)
{
    json_t *object = json_object();

    set_text(object, "form", comm->form == COMM_PORT ? "port" : "total");
    set_real(object, "alpha_us", comm->alpha_us);
    set_real(object, "gbps", comm->intra_gbps);
    set_text(object, "source", comm->source);
    return object;
}

json_t *model_to_json(const struct model *model)
{
    json_t *root = json_object();

    set_text(root, "kind", "compute");
    set_text(root, "basis",
             model->basis == BASIS_MEASURED ? "measured" : "modelled");
    set_text(root, "source", model->source);
    json_object_set_new(root, "setting", setting_to_json(&model->setting));
    json_object_set_new(root, "features", features_to_json(model));
    json_object_set_new(root, "shape", shape_to_json(&model->mlp.shape));
    json_object_set_new(root, "training", training_to_json(&model->training));
    json_object_set_new(root, "errors", errors_to_json(model));
    if (model->has_comm)
        json_object_set_new(root, "comm", comm_to_json(&model->comm));
    set_real(root, "floor_gbps", model->floor_gbps);
    return root;
}

/* What the readers below share. */
struct reader {
    const char *where;
    struct arena *arena;
    struct err *err;
};

static int get_text(const struct reader *reader, const char **out,
                    const json_t *object, const char *key)
{
    if (json_member_string(out, object, key, reader->where, reader->err))
        return -1;
    *out = arena_strdup(reader->arena, *out);
    return 0;
}

static int get_u64(const struct reader *reader, uint64_t *out,
                   const json_t *object, const char *key, uint64_t max)
{
    return json_member_u64(out, object, key, max, reader->where, reader->err);
}

static int get_u32(const struct reader *reader, uint32_t *out,
                   const json_t *object, const char *key, uint32_t max)
{
    uint64_t value;

    if (get_u64(reader, &value, object, key, max))
        return -1;
    *out = (uint32_t)value;
    return 0;
}

static int get_double(const struct reader *reader, double *out,
                      const json_t *object, const char *key)
{
    return json_member_double(out, object, key, reader->where, reader->err);
}

/* NAN where the member is left out. */
static int get_optional(const struct reader *reader, double *out,
                        const json_t *object, const char *key)
{
    *out = NAN;
    return json_object_get(object, key) ? get_double(reader, out, object, key)
                                        : 0;
}

static int refuse(const struct reader *reader, const char *key,
                  const char *text)
{
    return err_set(reader->err, ERR_INPUT, "%s: '%s' cannot be '%s'",
                   reader->where, key, text);
}

static int read_setting(const struct reader *reader,
                        struct sample_setting *setting, const json_t *root)
{
    const char *precision, *optimizer;
    json_t *object = NULL;

    if (json_member(&object, root, "setting", JSON_OBJECT, reader->where,
                    reader->err) ||
        get_text(reader, &setting->device, object, "device") ||
        get_u32(reader, &setting->n_threads, object, "threads", UINT32_MAX) ||
        get_text(reader, &setting->isa, object, "isa") ||
        get_text(reader, &precision, object, "precision") ||
        get_text(reader, &optimizer, object, "optimizer") ||
        get_u32(reader, &setting->batch, object, "batch", UINT32_MAX))
        return -1;
    if (precision_from_name(precision) < 0)
        return refuse(reader, "precision", precision);
    if (optimizer_from_name(optimizer) < 0)
        return refuse(reader, "optimizer", optimizer);
    if (!setting->batch)
        return refuse(reader, "batch", "0");
    setting->precision = (enum precision)precision_from_name(precision);
    setting->optimizer = (enum optimizer)optimizer_from_name(optimizer);
    return 0;
}

static int read_features(const struct reader *reader, struct model *model,
                         const json_t *root)
{
    json_t *list = NULL, *object;
    size_t i;

    if (json_member(&list, root, "features", JSON_ARRAY, reader->where,
                    reader->err))
        return -1;
    if (!json_array_size(list))
        return err_set(reader->err, ERR_INPUT, "%s: 'features' is empty",
                       reader->where);
    json_array_foreach(list, i, object)
    {
        struct reader own = *reader;
        const char *name;

        if (get_text(reader, &name, object, "name"))
            return -1;
        own.where = arena_printf(reader->arena, "%s: feature '%s'",
                                 reader->where, name);
        if (!feature_set_add(&model->features, name))
            return err_set(reader->err, ERR_INPUT,
                           "%s is unknown to this program, or there twice",
                           own.where);
        if (get_double(&own, &model->mean[i], object, "mean") ||
            get_double(&own, &model->std[i], object, "std") ||
            get_optional(&own, &model->min[i], object, "min") ||
            get_optional(&own, &model->max[i], object, "max"))
            return -1;
        if (!(model->std[i] > 0))
            return err_set(reader->err, ERR_INPUT, "%s: 'std' must be positive",
                           own.where);
    }
    return 0;
}

static int read_shape(const struct reader *reader, struct mlp_shape *shape,
                      uint32_t n_features, const json_t *root)
{
    json_t *object = NULL;

    if (json_member(&object, root, "shape", JSON_OBJECT, reader->where,
                    reader->err) ||
        get_u32(reader, &shape->n_hidden, object, "hidden",
                FAST_MLP_MAX_WIDTH) ||
        get_u32(reader, &shape->n_embed, object, "embed", MODEL_MAX_EMBED) ||
        get_u32(reader, &shape->n_head, object, "head", FAST_MLP_MAX_WIDTH))
        return -1;
    shape->n_features = n_features;
    if (!shape->n_hidden || !shape->n_embed || !shape->n_head)
        return err_set(reader->err, ERR_INPUT, "%s: 'shape' has an empty layer",
                       reader->where);
    return 0;
}

static int read_training(const struct reader *reader,
                         struct model_training *training, const json_t *root)
{
    json_t *object = NULL;

    if (json_member(&object, root, "training", JSON_OBJECT, reader->where,
                    reader->err) ||
        get_text(reader, &training->version, object, "version") ||
        get_text(reader, &training->loss, object, "loss") ||
        get_u64(reader, &training->seed, object, "seed", MAX_COUNT) ||
        get_u64(reader, &training->epochs, object, "epochs", MAX_COUNT) ||
        get_u64(reader, &training->best_epoch, object, "best_epoch",
                MAX_COUNT) ||
        get_u64(reader, &training->n_train, object, "train", MAX_COUNT) ||
        get_u64(reader, &training->n_validation, object, "validation",
                MAX_COUNT) ||
        get_u64(reader, &training->n_held_out, object, "held_out", MAX_COUNT) ||
        get_text(reader, &training->measured_from, object, "measured_from") ||
        get_text(reader, &training->measured_to, object, "measured_to"))
        return -1;
    return 0;
}

static int read_errors(const struct reader *reader, struct model *model,
                       const json_t *root)
{
    json_t *list = NULL, *object;
    size_t i;

    if (json_member(&list, root, "errors", JSON_ARRAY, reader->where,
                    reader->err))
        return -1;
    if (json_array_size(list) > MODEL_MAX_ERRORS)
        return err_set(reader->err, ERR_INPUT,
                       "%s: 'errors' lists more than %d predictors",
                       reader->where, MODEL_MAX_ERRORS);
    json_array_foreach(list, i, object)
    {
        struct errors *errors = &model->errors[i];
        uint64_t n;

        if (get_text(reader, &errors->name, object, "predictor") ||
            get_u64(reader, &n, object, "samples", MAX_COUNT) ||
            get_optional(reader, &errors->mse, object, "mse_ms2") ||
            get_optional(reader, &errors->mape, object, "mape") ||
            get_optional(reader, &errors->median_ape, object, "median_ape") ||
            get_optional(reader, &errors->kendall_tau, object, "kendall_tau"))
            return -1;
        errors->n = (size_t)n;
        model->n_errors++;
    }
    return 0;
}

static int read_comm(const struct reader *reader, struct model *model,
                     const json_t *root)
{
    struct comm_model *comm = &model->comm;
    json_t *object = NULL;
    const char *form;

    if (!json_object_get(root, "comm"))
        return 0;
    if (json_member(&object, root, "comm", JSON_OBJECT, reader->where,
                    reader->err) ||
        get_text(reader, &form, object, "form") ||
        get_double(reader, &comm->alpha_us, object, "alpha_us") ||
        get_double(reader, &comm->intra_gbps, object, "gbps") ||
        get_text(reader, &comm->source, object, "source"))
        return -1;
    if (strcmp(form, "port") && strcmp(form, "total"))
        return refuse(reader, "form", form);
    if (!(comm->alpha_us >= 0) || !(comm->intra_gbps > 0))
        return err_set(reader->err, ERR_INPUT,
                       "%s: 'comm' needs an alpha_us of at least 0 and a "
                       "positive gbps",
                       reader->where);
    comm->form = !strcmp(form, "port") ? COMM_PORT : COMM_TOTAL;
    model->has_comm = true;
    return 0;
}

int model_from_json(struct model *model, struct mlp_shape *shape,
                    const json_t *root, const char *where, struct arena *arena,
                    struct err *err)
{
    const struct reader reader = {where, arena, err};
    const char *kind, *basis;

    if (get_text(&reader, &kind, root, "kind") ||
        get_text(&reader, &basis, root, "basis") ||
        get_text(&reader, &model->source, root, "source"))
        return -1;
    if (strcmp(kind, "compute"))
        return refuse(&reader, "kind", kind);
    if (strcmp(basis, "measured") && strcmp(basis, "modelled"))
        return refuse(&reader, "basis", basis);
    model->basis = !strcmp(basis, "measured") ? BASIS_MEASURED : BASIS_MODELLED;
    if (read_setting(&reader, &model->setting, root) ||
        read_features(&reader, model, root) ||
        read_shape(&reader, shape, model->features.n, root) ||
        read_training(&reader, &model->training, root) ||
        read_errors(&reader, model, root) || read_comm(&reader, model, root) ||
        get_double(&reader, &model->floor_gbps, root, "floor_gbps"))
        return -1;
    if (model->floor_gbps < 0)
        return err_set(err, ERR_INPUT, "%s: 'floor_gbps' is negative", where);
    return 0;
}
