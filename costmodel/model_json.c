/* SPDX-License-Identifier: MIT */
#include "costmodel/model_json.h"

#include "base/json_place.h"
#include "costmodel/comm_json.h"
#include "costmodel/evaluate.h"
#include "costmodel/fast_mlp.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#define MAX_COUNT 0x1p53
#define MAX_MS 1e15
#define MAX_FIGURE 1e300       /* of features and totals, whatever their unit */
#define MIN_SCALE DBL_TRUE_MIN /* what is divided by */

/* Each member that is a number or a text, with its range. */

static const struct place_field head_fields[] = {
    {"source", PLACE_TEXT, true, offsetof(struct model, source), 0, 0},
    {"floor_gbps", PLACE_DOUBLE, true, offsetof(struct model, floor_gbps), 0,
     1e9},
};

static const struct place_field setting_fields[] = {
    {"device", PLACE_TEXT, true, offsetof(struct model, device), 0, 0},
    {"threads", PLACE_U32, true, offsetof(struct model, n_threads), 0,
     UINT32_MAX},
    {"isa", PLACE_TEXT, true, offsetof(struct model, isa), 0, 0},
};

/* The setting itself, in version 1. */
static const struct place_field batch_field = {
    "batch", PLACE_U32, false, offsetof(struct model_range, batch_min),
    1,       UINT32_MAX};

static const struct place_field range_fields[] = {
    {"batch_min", PLACE_U32, true, offsetof(struct model_range, batch_min), 1,
     UINT32_MAX},
    {"batch_max", PLACE_U32, true, offsetof(struct model_range, batch_max), 1,
     UINT32_MAX},
    {"samples", PLACE_U64, true, offsetof(struct model_range, n_samples), 0,
     MAX_COUNT},
};

static const struct place_field environment_fields[] = {
    {"driver", PLACE_TEXT, true, offsetof(struct model_environment, driver), 0,
     0},
    {"cuda", PLACE_TEXT, true, offsetof(struct model_environment, cuda), 0, 0},
    {"host", PLACE_TEXT, true, offsetof(struct model_environment, host), 0, 0},
    {"samples", PLACE_U64, true, offsetof(struct model_environment, n_samples),
     0, MAX_COUNT},
};

/* A feature or a total. */
struct scaled {
    const char *name;
    double mean, std, min, max, rate_ms;
};

static const struct place_field scaled_fields[] = {
    {"name", PLACE_TEXT, true, offsetof(struct scaled, name), 0, 0},
    {"mean", PLACE_DOUBLE, true, offsetof(struct scaled, mean), -MAX_FIGURE,
     MAX_FIGURE},
    {"std", PLACE_DOUBLE, true, offsetof(struct scaled, std), MIN_SCALE,
     MAX_FIGURE},
};

static const struct place_field feature_fields[] = {
    {"min", PLACE_DOUBLE, false, offsetof(struct scaled, min), -MAX_FIGURE,
     MAX_FIGURE},
    {"max", PLACE_DOUBLE, false, offsetof(struct scaled, max), -MAX_FIGURE,
     MAX_FIGURE},
};

static const struct place_field total_fields[] = {
    {"rate_ms", PLACE_DOUBLE, true, offsetof(struct scaled, rate_ms), 0,
     MAX_MS},
};

static const struct place_field estimate_fields[] = {
    {"base_ms", PLACE_DOUBLE, true, offsetof(struct estimate, base_ms),
     MIN_SCALE, MAX_MS},
    {"ratio_min", PLACE_DOUBLE, true, offsetof(struct estimate, ratio_min), 0,
     MAX_FIGURE},
    {"ratio_max", PLACE_DOUBLE, true, offsetof(struct estimate, ratio_max), 0,
     MAX_FIGURE},
};

static const struct place_field shape_fields[] = {
    {"hidden", PLACE_U32, true, offsetof(struct mlp_shape, n_hidden), 1,
     FAST_MLP_MAX_WIDTH},
    {"embed", PLACE_U32, true, offsetof(struct mlp_shape, n_embed), 1,
     MODEL_MAX_EMBED},
    {"head", PLACE_U32, true, offsetof(struct mlp_shape, n_head), 1,
     FAST_MLP_MAX_WIDTH},
};

#define TRAINING_TEXT(key, member)                                           \
    {                                                                        \
        key, PLACE_TEXT, true, offsetof(struct model_training, member), 0, 0 \
    }
#define TRAINING_COUNT(key, member)                                       \
    {                                                                     \
        key, PLACE_U64, true, offsetof(struct model_training, member), 0, \
            MAX_COUNT                                                     \
    }
static const struct place_field training_fields[] = {
    TRAINING_TEXT("version", version),
    TRAINING_TEXT("loss", loss),
    TRAINING_COUNT("seed", seed),
    TRAINING_COUNT("epochs", epochs),
    TRAINING_COUNT("best_epoch", best_epoch),
    TRAINING_COUNT("train", n_train),
    TRAINING_COUNT("validation", n_validation),
    TRAINING_COUNT("held_out", n_held_out),
    TRAINING_TEXT("measured_from", measured_from),
    TRAINING_TEXT("measured_to", measured_to),
};

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "a count of samples");
static const struct place_field error_fields[] = {
    {"predictor", PLACE_TEXT, true, offsetof(struct errors, name), 0, 0},
    {"samples", PLACE_U64, true, offsetof(struct errors, n), 0, MAX_COUNT},
    {"mse_ms2", PLACE_DOUBLE, false, offsetof(struct errors, mse), 0,
     MAX_FIGURE},
    {"mape", PLACE_DOUBLE, false, offsetof(struct errors, mape), 0, MAX_FIGURE},
    {"median_ape", PLACE_DOUBLE, false, offsetof(struct errors, median_ape), 0,
     MAX_FIGURE},
    {"p90_ape", PLACE_DOUBLE, false, offsetof(struct errors, p90_ape), 0,
     MAX_FIGURE},
    {"kendall_tau", PLACE_DOUBLE, false, offsetof(struct errors, kendall_tau),
     -1, 1},
};

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

static json_t *class_to_json(const struct setting_class *class)
{
    const struct model_range *range = &class->range;
    json_t *object = errors_to_json(&class->errors);

    json_object_set_new(object, "published", json_boolean(class->is_published));
    json_object_set_new(object, "trained", json_boolean(class->is_trained));
    set_text(object, "precision", precision_name(range->precision));
    set_text(object, "optimizer", optimizer_name(range->optimizer));
    set_count(object, "batch_min", range->batch_min);
    set_count(object, "batch_max", range->batch_max);
    return object;
}

json_t *evaluation_to_json(const struct evaluation *evaluation)
{
    json_t *root = json_object(), *errors = json_array(),
           *classes = json_array();

    for (size_t p = 0; p < N_PREDICTORS; p++)
        json_array_append_new(errors, errors_to_json(&evaluation->errors[p]));
    for (size_t c = 0; c < evaluation->n_classes; c++)
        json_array_append_new(classes, class_to_json(&evaluation->classes[c]));
    json_object_set_new(root, "held_out", errors);
    json_object_set_new(root, "settings", classes);
    set_count(root, "repeats", evaluation->n_repeats);
    set_real(root, "repeat_median_ape", evaluation->repeat_median_ape);
    set_real(root, "repeat_mape", evaluation->repeat_mape);
    set_count(root, "sentinels", evaluation->sentinels.n);
    set_real(root, "sentinel_spread_frac", evaluation->sentinels.spread_frac);
    set_count(root, "throttled", evaluation->n_throttled);
    return root;
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

/* What both an object of the list "ranges" and a setting of version 1 have. */
static int read_pair(struct model_range *range, const struct json_place *place,
                     struct err *err)
{
    const char *precisions[N_PRECISIONS], *optimizers[N_OPTIMIZERS];
    int precision, optimizer;

    for (int i = 0; i < N_PRECISIONS; i++)
        precisions[i] = precision_name((enum precision)i);
    for (int i = 0; i < N_OPTIMIZERS; i++)
        optimizers[i] = optimizer_name((enum optimizer)i);
    if (place_choice(&precision, place, "precision", precisions, N_PRECISIONS,
                     err) ||
        place_choice(&optimizer, place, "optimizer", optimizers, N_OPTIMIZERS,
                     err))
        return -1;
    range->precision = (enum precision)precision;
    range->optimizer = (enum optimizer)optimizer;
    return 0;
}

static int read_range(struct model *model, const struct json_place *place,
                      struct arena *arena, struct err *err)
{
    struct model_range range = {0};

    if (read_pair(&range, place, err) ||
        PLACE_FIELDS(&range, place, range_fields, arena, err))
        return -1;
    if (range.batch_min > range.batch_max)
        return place_error(place, err,
                           "a range of batches cannot go from %u to %u",
                           range.batch_min, range.batch_max);
    if (model_find_range(model, range.precision, range.optimizer))
        return place_error(place, err, "%s with %s is there twice",
                           precision_name(range.precision),
                           optimizer_name(range.optimizer));
    model->ranges[model->n_ranges++] = range;
    return 0;
}

/* What older models say nothing of. */
static int read_environment(struct model *model, const struct json_place *place,
                            struct arena *arena, struct err *err)
{
    return PLACE_FIELDS(&model->environments[model->n_environments++], place,
                        environment_fields, arena, err);
}

static int read_feature(struct model *model, const struct json_place *place,
                        struct arena *arena, struct err *err)
{
    const unsigned i = model->features.n;
    struct scaled scaled = {.min = NAN, .max = NAN};

    if (PLACE_FIELDS(&scaled, place, scaled_fields, arena, err) ||
        PLACE_FIELDS(&scaled, place, feature_fields, arena, err))
        return -1;
    if (!feature_set_add(&model->features, scaled.name))
        return place_error(place, err,
                           "feature '%s' is unknown to this program, or there "
                           "twice",
                           scaled.name);
    model->mean[i] = scaled.mean;
    model->std[i] = scaled.std;
    model->min[i] = scaled.min;
    model->max[i] = scaled.max;
    return 0;
}

static int read_total(struct model *model, const struct json_place *place,
                      struct arena *arena, struct err *err)
{
    struct estimate *estimate = &model->estimate;
    const unsigned i = estimate->totals.n;
    struct scaled scaled;

    if (PLACE_FIELDS(&scaled, place, scaled_fields, arena, err) ||
        PLACE_FIELDS(&scaled, place, total_fields, arena, err))
        return -1;
    if (!total_set_add(&estimate->totals, scaled.name))
        return place_error(place, err,
                           "total '%s' is unknown to this program, or there "
                           "twice",
                           scaled.name);
    estimate->mean[i] = scaled.mean;
    estimate->std[i] = scaled.std;
    estimate->rate_ms[i] = scaled.rate_ms;
    return 0;
}

static int read_errors(struct model *model, const struct json_place *place,
                       struct arena *arena, struct err *err)
{
    struct errors *errors = &model->errors[model->n_errors++];

    errors->mse = errors->mape = errors->median_ape = NAN;
    errors->p90_ape = errors->kendall_tau = NAN;
    return PLACE_FIELDS(errors, place, error_fields, arena, err);
}

/* Each object of list `key`, of min to max. */
static int read_list(struct model *model, const struct json_place *place,
                     const char *key, size_t min, size_t max,
                     int (*read)(struct model *model,
                                 const struct json_place *place,
                                 struct arena *arena, struct err *err),
                     struct arena *arena, struct err *err)
{
    const json_t *list;

    if (place_list(&list, place, key, err))
        return -1;
    if (json_array_size(list) < min || json_array_size(list) > max)
        return place_error(place, err, "%s has %zu entries, not %zu to %zu",
                           key, json_array_size(list), min, max);
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct json_place item;

        if (place_element(&item, place, key, list, i, err) ||
            read(model, &item, arena, err))
            return -1;
    }
    return 0;
}

static int read_setting(struct model *model, const struct json_place *root,
                        struct arena *arena, struct err *err)
{
    struct model_range *only = &model->ranges[0];
    struct json_place place;

    if (place_object(&place, root, "setting", err) ||
        PLACE_FIELDS(model, &place, setting_fields, arena, err) ||
        (place_has(&place, "environments") &&
         read_list(model, &place, "environments", 0, MODEL_MAX_ENVIRONMENTS,
                   read_environment, arena, err)))
        return -1;
    if (!place_has(&place, "batch")) /* not version 1 */
        return read_list(model, &place, "ranges", 1, MODEL_MAX_RANGES,
                         read_range, arena, err);
    if (read_pair(only, &place, err) ||
        place_fields(only, &place, &batch_field, 1, arena, err))
        return -1;
    only->batch_max = only->batch_min;
    model->n_ranges = 1;
    return 0;
}

static int read_estimate(struct model *model, const struct json_place *root,
                         struct arena *arena, struct err *err)
{
    struct estimate *estimate = &model->estimate;
    struct json_place place;

    if (!place_has(root, "estimate"))
        return 0;
    if (place_object(&place, root, "estimate", err) ||
        PLACE_FIELDS(estimate, &place, estimate_fields, arena, err) ||
        read_list(model, &place, "totals", 1, MAX_TOTALS, read_total, arena,
                  err))
        return -1;
    if (estimate->ratio_max < estimate->ratio_min)
        return place_error(&place, err, "ratio_max is below ratio_min");
    return 0;
}

static int read_shape(struct mlp_shape *shape, const struct model *model,
                      const struct json_place *root, struct err *err)
{
    struct json_place place;

    shape->n_features = model->features.n;
    shape->n_totals = model->estimate.totals.n;
    if (place_object(&place, root, "shape", err))
        return -1;
    return PLACE_FIELDS(shape, &place, shape_fields, NULL, err);
}

static int read_training(struct model_training *training,
                         const struct json_place *root, struct arena *arena,
                         struct err *err)
{
    struct json_place place;

    if (place_object(&place, root, "training", err))
        return -1;
    return PLACE_FIELDS(training, &place, training_fields, arena, err);
}

static int read_comm(struct model *model, const struct json_place *root,
                     struct arena *arena, struct err *err)
{
    struct json_place place;

    model->has_comm = place_has(root, "comm");
    if (!model->has_comm)
        return 0;
    if (place_object(&place, root, "comm", err))
        return -1;
    return comm_from_json(&model->comm, &place, arena, err);
}

int model_from_json(struct model *model, struct mlp_shape *shape,
                    const json_t *root, const char *where, struct arena *arena,
                    struct err *err)
{
    static const char *const kinds[] = {"compute"};
    static const char *const bases[] = {"modelled", "measured"};
    struct json_place place;
    int kind, basis;

    if (place_root(&place, root, where, err))
        return -1;
    place.is_strict = true;
    if (place_choice(&kind, &place, "kind", kinds, 1, err) ||
        place_choice(&basis, &place, "basis", bases, 2, err))
        return -1;
    model->basis = basis ? BASIS_MEASURED : BASIS_MODELLED;
    if (PLACE_FIELDS(model, &place, head_fields, arena, err) ||
        read_setting(model, &place, arena, err) ||
        read_list(model, &place, "features", 1, MAX_FEATURES, read_feature,
                  arena, err) ||
        read_estimate(model, &place, arena, err) ||
        read_shape(shape, model, &place, err) ||
        read_training(&model->training, &place, arena, err) ||
        read_list(model, &place, "errors", 0, MODEL_MAX_ERRORS, read_errors,
                  arena, err) ||
        read_comm(model, &place, arena, err))
        return -1;
    return 0;
}
