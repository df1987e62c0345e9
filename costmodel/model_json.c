/* SPDX-License-Identifier: MIT */
#include "costmodel/model_json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "costmodel/comm_json.h"
#include "costmodel/fast_mlp.h"

#define MAX_COUNT 0x1p53
#define MAX_MS 1e15
#define MAX_FIGURE 1e300 /* of features and totals, whatever their unit */

/* Each member that is a number, with its range, wherever it stands. */
static const struct range {
    const char *key;
    double min, max;
} ranges[] = {
    {"threads", 0, UINT32_MAX},       {"batch", 1, UINT32_MAX},
    {"batch_min", 1, UINT32_MAX},     {"batch_max", 1, UINT32_MAX},
    {"samples", 0, MAX_COUNT},        {"mean", -MAX_FIGURE, MAX_FIGURE},
    {"std", 0, MAX_FIGURE},           {"min", -MAX_FIGURE, MAX_FIGURE},
    {"max", -MAX_FIGURE, MAX_FIGURE}, {"rate_ms", 0, MAX_MS},
    {"base_ms", 0, MAX_MS},           {"ratio_min", 0, MAX_FIGURE},
    {"ratio_max", 0, MAX_FIGURE},     {"hidden", 1, FAST_MLP_MAX_WIDTH},
    {"embed", 1, MODEL_MAX_EMBED},    {"head", 1, FAST_MLP_MAX_WIDTH},
    {"seed", 0, MAX_COUNT},           {"epochs", 0, MAX_COUNT},
    {"best_epoch", 0, MAX_COUNT},     {"train", 0, MAX_COUNT},
    {"validation", 0, MAX_COUNT},     {"held_out", 0, MAX_COUNT},
    {"mse_ms2", 0, MAX_FIGURE},       {"mape", 0, MAX_FIGURE},
    {"median_ape", 0, MAX_FIGURE},    {"p90_ape", 0, MAX_FIGURE},
    {"kendall_tau", -1, 1},           {"floor_gbps", 0, 1e9},
};

static const struct range *range_of(const char *key)
{
    size_t i = 0;

    while (strcmp(ranges[i].key, key) != 0) {
        i++;
        assert(i < sizeof(ranges) / sizeof(*ranges));
    }
    return &ranges[i];
}

/* JSON has no NaN: what is not known is left out. */
static void set_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, json_real_or_null(value));
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

static json_t *ranges_to_json(const struct model *model)
{
    json_t *list = json_array();

    for (size_t i = 0; i < model->n_ranges; i++) {
        const struct model_range *range = &model->ranges[i];
        json_t *object = json_object();

        set_text(object, "precision", precision_name(range->precision));
        set_text(object, "optimizer", optimizer_name(range->optimizer));
        set_count(object, "batch_min", range->batch_min);
        set_count(object, "batch_max", range->batch_max);
        set_count(object, "samples", range->n_samples);
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *environments_to_json(const struct model *model)
{
    json_t *list = json_array();

    for (size_t i = 0; i < model->n_environments; i++) {
        const struct model_environment *environment = &model->environments[i];
        json_t *object = json_object();

        set_text(object, "driver", environment->driver);
        set_text(object, "cuda", environment->cuda);
        set_text(object, "host", environment->host);
        set_count(object, "samples", environment->n_samples);
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *setting_to_json(const struct model *model)
{
    json_t *object = json_object();

    set_text(object, "device", model->device);
    set_count(object, "threads", model->n_threads);
    set_text(object, "isa", model->isa);
    json_object_set_new(object, "ranges", ranges_to_json(model));
    if (model->n_environments)
        json_object_set_new(object, "environments",
                            environments_to_json(model));
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

static json_t *estimate_to_json(const struct estimate *estimate)
{
    json_t *object = json_object(), *list = json_array();

    set_real(object, "base_ms", estimate->base_ms);
    set_real(object, "ratio_min", estimate->ratio_min);
    set_real(object, "ratio_max", estimate->ratio_max);
    for (unsigned i = 0; i < estimate->totals.n; i++) {
        json_t *total = json_object();

        set_text(total, "name", total_set_name(&estimate->totals, i));
        set_real(total, "rate_ms", estimate->rate_ms[i]);
        set_real(total, "mean", estimate->mean[i]);
        set_real(total, "std", estimate->std[i]);
        json_array_append_new(list, total);
    }
    json_object_set_new(object, "totals", list);
    return object;
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

json_t *errors_to_json(const struct errors *errors)
{
    json_t *object = json_object();

    set_text(object, "predictor", errors->name);
    set_count(object, "samples", errors->n);
    set_real(object, "mse_ms2", errors->mse);
    set_real(object, "mape", errors->mape);
    set_real(object, "median_ape", errors->median_ape);
    set_real(object, "p90_ape", errors->p90_ape);
    set_real(object, "kendall_tau", errors->kendall_tau);
    return object;
}

json_t *model_to_json(const struct model *model)
{
    json_t *root = json_object(), *errors = json_array();

    set_text(root, "kind", "compute");
    set_text(root, "basis",
             model->basis == BASIS_MEASURED ? "measured" : "modelled");
    set_text(root, "source", model->source);
    json_object_set_new(root, "setting", setting_to_json(model));
    json_object_set_new(root, "features", features_to_json(model));
    if (model->estimate.totals.n)
        json_object_set_new(root, "estimate",
                            estimate_to_json(&model->estimate));
    json_object_set_new(root, "shape", shape_to_json(&model->mlp.shape));
    json_object_set_new(root, "training", training_to_json(&model->training));
    for (size_t i = 0; i < model->n_errors; i++)
        json_array_append_new(errors, errors_to_json(&model->errors[i]));
    json_object_set_new(root, "errors", errors);
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
                   const json_t *object, const char *key)
{
    const struct range *range = range_of(key);

    if (json_member_u64(out, object, key, (uint64_t)range->max, reader->where,
                        reader->err))
        return -1;
    if (*out >= (uint64_t)range->min)
        return 0;
    return err_set(reader->err, ERR_INPUT,
                   "%s: '%s' is %.0f, outside %.0f to %.0f", reader->where, key,
                   (double)*out, range->min, range->max);
}

static int get_u32(const struct reader *reader, uint32_t *out,
                   const json_t *object, const char *key)
{
    uint64_t value;

    if (get_u64(reader, &value, object, key))
        return -1;
    *out = (uint32_t)value;
    return 0;
}

static int get_double(const struct reader *reader, double *out,
                      const json_t *object, const char *key)
{
    const struct range *range = range_of(key);

    if (json_member_double(out, object, key, reader->where, reader->err))
        return -1;
    if (*out >= range->min && *out <= range->max)
        return 0;
    return err_set(reader->err, ERR_INPUT, "%s: '%s' is %g, not in %g to %g",
                   reader->where, key, *out, range->min, range->max);
}

/* NAN where the member is null or left out. */
static int get_optional(const struct reader *reader, double *out,
                        const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    *out = NAN;
    if (!value || json_is_null(value))
        return 0;
    return get_double(reader, out, object, key);
}

static int refuse(const struct reader *reader, const char *key,
                  const char *text)
{
    return err_set(reader->err, ERR_INPUT, "%s: '%s' cannot be '%s'",
                   reader->where, key, text);
}

/* What both an object of the list "ranges" and a setting of version 1 have. */
static int read_pair(const struct reader *reader, struct model_range *range,
                     const json_t *object)
{
    const char *precision, *optimizer;

    if (get_text(reader, &precision, object, "precision") ||
        get_text(reader, &optimizer, object, "optimizer"))
        return -1;
    if (precision_from_name(precision) < 0)
        return refuse(reader, "precision", precision);
    if (optimizer_from_name(optimizer) < 0)
        return refuse(reader, "optimizer", optimizer);
    range->precision = (enum precision)precision_from_name(precision);
    range->optimizer = (enum optimizer)optimizer_from_name(optimizer);
    return 0;
}

static int read_range(const struct reader *reader, struct model *model,
                      const json_t *object)
{
    struct model_range range;

    if (read_pair(reader, &range, object) ||
        get_u32(reader, &range.batch_min, object, "batch_min") ||
        get_u32(reader, &range.batch_max, object, "batch_max") ||
        get_u64(reader, &range.n_samples, object, "samples"))
        return -1;
    if (range.batch_min > range.batch_max)
        return err_set(reader->err, ERR_INPUT,
                       "%s: a range of batches cannot go from %u to %u",
                       reader->where, range.batch_min, range.batch_max);
    if (model_find_range(model, range.precision, range.optimizer))
        return err_set(reader->err, ERR_INPUT,
                       "%s: 'ranges' has %s with %s twice", reader->where,
                       precision_name(range.precision),
                       optimizer_name(range.optimizer));
    model->ranges[model->n_ranges++] = range;
    return 0;
}

/* What older models say nothing of. */
static int read_environments(const struct reader *reader, struct model *model,
                             const json_t *setting)
{
    json_t *list = NULL, *item;
    size_t i;

    if (!json_object_get(setting, "environments"))
        return 0;
    if (json_member(&list, setting, "environments", JSON_ARRAY, reader->where,
                    reader->err))
        return -1;
    json_array_foreach(list, i, item)
    {
        struct model_environment *environment = &model->environments[i];

        if (i == MODEL_MAX_ENVIRONMENTS)
            return err_set(reader->err, ERR_INPUT,
                           "%s: 'environments' are more than %d", reader->where,
                           MODEL_MAX_ENVIRONMENTS);
        if (get_text(reader, &environment->driver, item, "driver") ||
            get_text(reader, &environment->cuda, item, "cuda") ||
            get_text(reader, &environment->host, item, "host") ||
            get_u64(reader, &environment->n_samples, item, "samples"))
            return -1;
        model->n_environments++;
    }
    return 0;
}

static int read_setting(const struct reader *reader, struct model *model,
                        const json_t *root)
{
    json_t *object = NULL, *list = NULL, *item;
    uint32_t batch;
    size_t i;

    if (json_member(&object, root, "setting", JSON_OBJECT, reader->where,
                    reader->err) ||
        get_text(reader, &model->device, object, "device") ||
        get_u32(reader, &model->n_threads, object, "threads") ||
        get_text(reader, &model->isa, object, "isa") ||
        read_environments(reader, model, object))
        return -1;
    if (json_object_get(object, "batch")) { /* version 1 */
        if (read_pair(reader, &model->ranges[0], object) ||
            get_u32(reader, &batch, object, "batch"))
            return -1;
        model->ranges[0].batch_min = model->ranges[0].batch_max = batch;
        model->n_ranges = 1;
        return 0;
    }
    if (json_member(&list, object, "ranges", JSON_ARRAY, reader->where,
                    reader->err))
        return -1;
    json_array_foreach(list, i, item)
    {
        if (read_range(reader, model, item))
            return -1;
    }
    if (!model->n_ranges)
        return err_set(reader->err, ERR_INPUT, "%s: 'ranges' is empty",
                       reader->where);
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

static int read_total(const struct reader *reader, struct estimate *estimate,
                      const json_t *object)
{
    const unsigned i = estimate->totals.n;
    struct reader own = *reader;
    const char *name;

    if (get_text(reader, &name, object, "name"))
        return -1;
    own.where =
        arena_printf(reader->arena, "%s: total '%s'", reader->where, name);
    if (!total_set_add(&estimate->totals, name))
        return err_set(reader->err, ERR_INPUT,
                       "%s is unknown to this program, or there twice",
                       own.where);
    if (get_double(&own, &estimate->rate_ms[i], object, "rate_ms") ||
        get_double(&own, &estimate->mean[i], object, "mean") ||
        get_double(&own, &estimate->std[i], object, "std"))
        return -1;
    if (!(estimate->std[i] > 0))
        return err_set(reader->err, ERR_INPUT, "%s: 'std' must be positive",
                       own.where);
    return 0;
}

static int read_estimate(const struct reader *reader, struct estimate *estimate,
                         const json_t *root)
{
    json_t *object = NULL, *list = NULL, *item;
    size_t i;

    if (!json_object_get(root, "estimate"))
        return 0;
    if (json_member(&object, root, "estimate", JSON_OBJECT, reader->where,
                    reader->err) ||
        get_double(reader, &estimate->base_ms, object, "base_ms") ||
        get_double(reader, &estimate->ratio_min, object, "ratio_min") ||
        get_double(reader, &estimate->ratio_max, object, "ratio_max") ||
        json_member(&list, object, "totals", JSON_ARRAY, reader->where,
                    reader->err))
        return -1;
    json_array_foreach(list, i, item)
    {
        if (read_total(reader, estimate, item))
            return -1;
    }
    if (!estimate->totals.n || !(estimate->base_ms > 0) ||
        estimate->ratio_max < estimate->ratio_min)
        return err_set(reader->err, ERR_INPUT,
                       "%s: 'estimate' needs totals, a positive base_ms and a "
                       "range of ratios",
                       reader->where);
    return 0;
}

static int read_shape(const struct reader *reader, struct mlp_shape *shape,
                      const struct model *model, const json_t *root)
{
    json_t *object = NULL;

    if (json_member(&object, root, "shape", JSON_OBJECT, reader->where,
                    reader->err) ||
        get_u32(reader, &shape->n_hidden, object, "hidden") ||
        get_u32(reader, &shape->n_embed, object, "embed") ||
        get_u32(reader, &shape->n_head, object, "head"))
        return -1;
    shape->n_features = model->features.n;
    shape->n_totals = model->estimate.totals.n;
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
        get_u64(reader, &training->seed, object, "seed") ||
        get_u64(reader, &training->epochs, object, "epochs") ||
        get_u64(reader, &training->best_epoch, object, "best_epoch") ||
        get_u64(reader, &training->n_train, object, "train") ||
        get_u64(reader, &training->n_validation, object, "validation") ||
        get_u64(reader, &training->n_held_out, object, "held_out") ||
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
            get_u64(reader, &n, object, "samples") ||
            get_optional(reader, &errors->mse, object, "mse_ms2") ||
            get_optional(reader, &errors->mape, object, "mape") ||
            get_optional(reader, &errors->median_ape, object, "median_ape") ||
            get_optional(reader, &errors->p90_ape, object, "p90_ape") ||
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
    json_t *object = NULL;

    if (!json_object_get(root, "comm"))
        return 0;
    model->has_comm = true;
    if (json_member(&object, root, "comm", JSON_OBJECT, reader->where,
                    reader->err))
        return -1;
    return comm_from_json(&model->comm, object, reader->where, reader->arena,
                          reader->err);
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
    if (read_setting(&reader, model, root) ||
        read_features(&reader, model, root) ||
        read_estimate(&reader, &model->estimate, root) ||
        read_shape(&reader, shape, model, root) ||
        read_training(&reader, &model->training, root) ||
        read_errors(&reader, model, root) || read_comm(&reader, model, root) ||
        get_double(&reader, &model->floor_gbps, root, "floor_gbps"))
        return -1;
    return 0;
}
