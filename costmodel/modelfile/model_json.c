/* SPDX-License-Identifier: MIT */
#include "costmodel/modelfile/model_json.h"

#include "costmodel/modelfile/products_json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#define MAX_COUNT 0x1p53
#define MAX_MS 1e15
#define MAX_FIGURE 1e300       /* limit of features and totals, in any unit */
#define MIN_SCALE DBL_TRUE_MIN /* least divisor in a scaling */
#define MAX_POWER 100
#define MIN_GPU 1e-9
/* Upper limits for the time and the bytes of an exchange. No real exchange
 * reaches them. */
#define MAX_US 1e18
#define MAX_BYTES 0x1p63

/* Descriptions of all members of the file that are a number or a text, each
 * with its range. The knots of curves are checked when they are read. */

/* The members "kind" and "basis". The basis has two choices, since a model is
 * never analytic. */
struct head {
    uint32_t kind, is_measured;
};
static const char *const kind_names[] = {"compute", NULL};
static const char *const basis_names[] = {"modelled", "measured", NULL};
static const struct place_field head_fields[] = {
    {"kind", MEMBER_OF(struct head, kind), true, 0, 0, kind_names},
    {"basis", MEMBER_OF(struct head, is_measured), true, 0, 0, basis_names},
};
#define MODEL(member) MEMBER_OF(struct model, member)
/* Members of the model itself; model_fields[0] is written first in
 * the header, model_fields[1] last. */
static const struct place_field model_fields[] = {
    {"source", MODEL(source), true, 0, 0, NULL},
    {"floor_gbps", MODEL(floor_gbps), true, 0, 1e9, NULL},
};
static const struct place_field setting_fields[] = {
    {"device", MODEL(setting.device), true, 0, 0, NULL},
    {"threads", MODEL(setting.n_threads), true, 0, UINT32_MAX, NULL},
    {"isa", MODEL(setting.isa), true, 0, 0, NULL},
};

#define RANGE(member) MEMBER_OF(struct model_range, member)
static const struct place_field range_fields[] = {
    {"precision", RANGE(precision), true, 0, 0, precision_names},
    {"optimizer", RANGE(optimizer), true, 0, 0, optimizer_names},
    {"batch_min", RANGE(batch_min), true, 1, UINT32_MAX, NULL},
    {"batch_max", RANGE(batch_max), true, 1, UINT32_MAX, NULL},
    {"samples", RANGE(n_samples), true, 0, MAX_COUNT, NULL},
};
/* The batch in files of version 1. A file of version 1 has one setting, which
 * consists of the first two members of range_fields and of the batch. */
static const struct place_field batch_field[] = {
    {"batch", RANGE(batch_min), true, 1, UINT32_MAX, NULL}};

#define ENVIRONMENT(member) MEMBER_OF(struct model_environment, member)
static const struct place_field environment_fields[] = {
    {"driver", ENVIRONMENT(driver), true, 0, 0, NULL},
    {"cuda", ENVIRONMENT(cuda), true, 0, 0, NULL},
    {"host", ENVIRONMENT(host), true, 0, 0, NULL},
    {"samples", ENVIRONMENT(n_samples), true, 0, MAX_COUNT, NULL},
};

#define FEATURE(member) MEMBER_OF(struct feature, member)
static const struct place_field feature_fields[] = {
    {"name", FEATURE(name), true, 0, 0, NULL},
    {"mean", FEATURE(mean), true, -MAX_FIGURE, MAX_FIGURE, NULL},
    {"std", FEATURE(std), true, MIN_SCALE, MAX_FIGURE, NULL},
    {"min", FEATURE(min), false, -MAX_FIGURE, MAX_FIGURE, NULL},
    {"max", FEATURE(max), false, -MAX_FIGURE, MAX_FIGURE, NULL},
};
/* Members of a total: [0] in an estimate by rates, [1] in a roofline. */
static const struct place_field total_fields[][6] = {
    {{"name", FEATURE(name), true, 0, 0, NULL},
     {"rate_ms", FEATURE(rate_ms), true, 0, MAX_MS, NULL},
     {"mean", FEATURE(mean), true, -MAX_FIGURE, MAX_FIGURE, NULL},
     {"std", FEATURE(std), true, MIN_SCALE, MAX_FIGURE, NULL},
     {"min", FEATURE(min), false, -MAX_FIGURE, MAX_FIGURE, NULL},
     {"max", FEATURE(max), false, -MAX_FIGURE, MAX_FIGURE, NULL}},
    {{"name", FEATURE(name), true, 0, 0, NULL},
     {"power", FEATURE(power), true, -MAX_POWER, MAX_POWER, NULL},
     {"mean", FEATURE(mean), true, -MAX_FIGURE, MAX_FIGURE, NULL},
     {"std", FEATURE(std), true, MIN_SCALE, MAX_FIGURE, NULL},
     {"min", FEATURE(min), true, -MAX_FIGURE, MAX_FIGURE, NULL},
     {"max", FEATURE(max), true, -MAX_FIGURE, MAX_FIGURE, NULL}},
};
#define GPU(member) MEMBER_OF(struct gpu_spec, member)
static const struct place_field gpu_fields[] = {
    {"name", GPU(name), true, 0, 0, NULL},
    {"exchange", MEMBER_U32, offsetof(struct gpu_spec, comm_form), true, 0, 0,
     comm_form_names},
    {"launch_us", GPU(launch_us), true, 0, MAX_US, NULL},
    {"row_cycles", GPU(row_cycles), true, 0, MAX_MS, NULL},
    {"bag_row_us", GPU(bag_row_us), true, 0, MAX_US, NULL},
    {"hot_rows", GPU(hot_rows), false, 0, MAX_US, NULL},
    {"dram_gbps", GPU(dram_gbps), true, MIN_GPU, MAX_MS, NULL},
    {"l2_gbps", GPU(l2_gbps), true, MIN_GPU, MAX_MS, NULL},
    {"l2_bytes", GPU(l2_bytes), true, 1, MAX_COUNT, NULL},
    {"clock_ghz", GPU(clock_ghz), true, MIN_GPU, MAX_MS, NULL},
    {"n_sms", GPU(n_sms), true, 1, UINT32_MAX, NULL},
};

#define ESTIMATE(member) MEMBER_OF(struct estimate, member)
static const struct place_field base_field[] = {
    {"base_ms", ESTIMATE(base_ms), true, MIN_SCALE, MAX_MS, NULL}};
static const struct place_field ratio_fields[] = {
    {"ratio_min", ESTIMATE(ratio_min), true, 0, MAX_FIGURE, NULL},
    {"ratio_max", ESTIMATE(ratio_max), true, 0, MAX_FIGURE, NULL},
};

#define SHAPE(member) MEMBER_OF(struct mlp_shape, member)
static const struct place_field shape_fields[] = {
    {"hidden", SHAPE(n_hidden), true, 1, FAST_MLP_MAX_WIDTH, NULL},
    {"embed", SHAPE(n_embed), true, 1, MODEL_MAX_EMBED, NULL},
    {"head", SHAPE(n_head), true, 1, FAST_MLP_MAX_WIDTH, NULL},
    {"monotone", SHAPE(is_monotone), false, 0, 0, NULL},
};

#define TRAINING(member) MEMBER_OF(struct model_training, member)
static const struct place_field training_fields[] = {
    {"version", TRAINING(version), true, 0, 0, NULL},
    {"build", TRAINING(build), false, 0, 0, NULL},
    {"loss", TRAINING(loss), true, 0, 0, NULL},
    {"seed", TRAINING(seed), true, 0, MAX_COUNT, NULL},
    {"epochs", TRAINING(epochs), true, 0, MAX_COUNT, NULL},
    {"best_epoch", TRAINING(best_epoch), true, 0, MAX_COUNT, NULL},
    {"train", TRAINING(n_train), true, 0, MAX_COUNT, NULL},
    {"validation", TRAINING(n_validation), true, 0, MAX_COUNT, NULL},
    {"held_out", TRAINING(n_held_out), true, 0, MAX_COUNT, NULL},
    {"folds", TRAINING(n_folds), false, 0, MAX_COUNT, NULL},
    {"measured_from", TRAINING(measured_from), true, 0, 0, NULL},
    {"measured_to", TRAINING(measured_to), true, 0, 0, NULL},
};

#define ERRORS(member) MEMBER_OF(struct errors, member)
static const struct place_field error_fields[] = {
    {"predictor", ERRORS(name), true, 0, 0, NULL},
    {"samples", ERRORS(n), true, 0, MAX_COUNT, NULL},
    {"mse_ms2", ERRORS(mse), false, 0, MAX_FIGURE, NULL},
    {"mape", ERRORS(mape), false, 0, MAX_FIGURE, NULL},
    {"median_ape", ERRORS(median_ape), false, 0, MAX_FIGURE, NULL},
    {"p90_ape", ERRORS(p90_ape), false, 0, MAX_FIGURE, NULL},
    {"kendall_tau", ERRORS(kendall_tau), false, -1, 1, NULL},
};

#define INTERVAL(member) MEMBER_OF(struct interval, member)
static const struct place_field interval_fields[] = {
    {"class", INTERVAL(class), true, 0, 0, NULL},
    {"of", INTERVAL(ground), true, 0, 0, NULL},
    {"samples", INTERVAL(n), true, 1, MAX_COUNT, NULL},
    {"error_frac", INTERVAL(error_frac), true, 0, INTERVAL_MAX_ERROR, NULL},
    {"pair_error_frac", INTERVAL(pair_error_frac), true, 0, MAX_FIGURE, NULL},
};

#define COMM(member) MEMBER_OF(struct comm_curves, member)
static const struct place_field comm_fields[] = {
    {"form", COMM(rules.form), true, 0, 0, comm_form_names},
    {"source", COMM(source), true, 0, 0, NULL},
    {"shares_port", COMM(rules.shares_port), false, 0, 0, NULL},
};

#define CURVE(member) MEMBER_OF(struct comm_curve, member)
static const struct place_field curve_fields[] = {
    {"ranks", CURVE(n_ranks), true, 0, UINT32_MAX, NULL},
    {"hosts", CURVE(n_hosts), true, 0, UINT32_MAX, NULL},
};

struct line {
    double alpha_us, gbps;
};
#define LINE(member) MEMBER_OF(struct line, member)
static const struct place_field line_fields[] = {
    {"alpha_us", LINE(alpha_us), true, 0, MAX_US - COMM_LINE_US, NULL},
    {"gbps", LINE(gbps), true, CLUSTER_MIN_GBPS, CLUSTER_MAX_GBPS, NULL},
};

/* Sets a member of an object to an array of rows; each row is an object. */
#define SET_LIST(object, key, rows, n, fields) \
    json_object_set_new(object, key, PLACE_LIST_ROWS(rows, n, fields))

static json_t *estimate_to_json(const struct estimate *estimate)
{
    const struct feature_set *totals = &estimate->totals;
    const bool is_roofline = estimate->gpu.name != NULL;
    json_t *object = json_object();

    if (is_roofline)
        json_object_set_new(object, "roofline",
                            PLACE_ROW(&estimate->gpu, gpu_fields));
    else
        PLACE_SET_FIELDS(object, estimate, base_field);
    PLACE_SET_FIELDS(object, estimate, ratio_fields);
    SET_LIST(object, "totals", totals->items, totals->n,
             total_fields[is_roofline]);
    return object;
}

static json_t *setting_to_json(const struct model *model)
{
    json_t *object = PLACE_ROW(model, setting_fields);

    SET_LIST(object, "ranges", model->ranges.items, model->ranges.n,
             range_fields);
    if (model->n_environments)
        SET_LIST(object, "environments", model->environments,
                 model->n_environments, environment_fields);
    return object;
}

static json_t *comm_to_json(const struct comm_curves *fit)
{
    json_t *object = place_row(fit, comm_fields, 1), *curves = json_array();

    for (uint32_t i = 0; i < fit->n_curves; i++) {
        const struct comm_curve *curve = &fit->curves[i];
        json_t *item = PLACE_ROW(curve, curve_fields), *knots = json_array();

        for (uint32_t k = 0; k < curve->n_knots; k++)
            json_array_append_new(
                knots, json_pack("[ff]", curve->bytes[k], curve->us[k]));
        json_object_set_new(item, "knots", knots);
        json_array_append_new(curves, item);
    }
    json_object_set_new(object, "curves", curves);
    place_set_fields(object, fit, comm_fields + 1,
                     fit->rules.shares_port ? 2 : 1);
    return object;
}

json_t *errors_to_json(const struct errors *errors)
{
    return PLACE_ROW(errors, error_fields);
}

void model_range_to_json(const struct model_range *range, json_t *object)
{
    PLACE_SET_FIELDS(object, range, range_fields);
}

static json_t *training_to_json(const struct model_training *training)
{
    json_t *value = PLACE_ROW(training, training_fields);

    if (!training->build) /* the model is from a version before 0.2.0 */
        json_object_del(value, "build");
    return value;
}

json_t *model_to_json(const struct model *model)
{
    const struct head head = {.is_measured = model->basis == BASIS_MEASURED};
    json_t *root = PLACE_ROW(&head, head_fields);

    place_set_fields(root, model, model_fields, 1);
    json_object_set_new(root, "setting", setting_to_json(model));
    SET_LIST(root, "features", model->features.items, model->features.n,
             feature_fields);
    if (model->estimate.totals.n)
        json_object_set_new(root, "estimate",
                            estimate_to_json(&model->estimate));
    if (model_kind(model) != MODEL_ROOFLINE)
        json_object_set_new(root, "shape",
                            PLACE_ROW(&model->mlp.shape, shape_fields));
    json_object_set_new(root, "training", training_to_json(&model->training));
    SET_LIST(root, "errors", model->errors.items, model->errors.n,
             error_fields);
    if (model->intervals.n)
        SET_LIST(root, "intervals", model->intervals.items, model->intervals.n,
                 interval_fields);
    if (model->choice.n)
        SET_LIST(root, "choice", model->choice.items, model->choice.n,
                 error_fields);
    if (model->has_comm)
        json_object_set_new(root, "comm", comm_to_json(&model->comm));
    if (model->products.n)
        json_object_set_new(root, "products",
                            products_to_json(&model->products));
    place_set_fields(root, model, model_fields + 1, 1);
    return root;
}

static int read_range(void *to, const struct json_place *place, struct err *err)
{
    struct model *model = to;
    struct model_range range = {0};

    if (PLACE_FIELDS(&range, place, range_fields, err))
        return -1;
    if (range.batch_min > range.batch_max)
        return place_error(place, err,
                           "a range of batches cannot go from %u to %u",
                           range.batch_min, range.batch_max);
    if (range_list_find(&model->ranges, range.precision, range.optimizer) <
        model->ranges.n)
        return place_error(place, err, "%s with %s is given twice",
                           precision_names[range.precision],
                           optimizer_names[range.optimizer]);
    model->ranges.items[model->ranges.n++] = range;
    return 0;
}

/* Reads one environment of the measurements. Files of older models have no
 * environments. */
static int read_environment(void *to, const struct json_place *place,
                            struct err *err)
{
    struct model *model = to;

    return PLACE_FIELDS(&model->environments[model->n_environments++], place,
                        environment_fields, err);
}

static int read_feature(void *to, const struct json_place *place,
                        struct err *err)
{
    struct feature_set *features = to;
    struct feature *feature = &features->items[features->n];

    feature->min = feature->max = NAN;
    if (PLACE_FIELDS(feature, place, feature_fields, err))
        return -1;
    if (feature_set_add(features, feature->name))
        return 0;
    return place_error(
        place, err, "feature '%s' is unknown to this program, or given twice",
        feature->name);
}

static int read_total(void *to, const struct json_place *place, struct err *err)
{
    struct estimate *estimate = to;
    struct feature_set *totals = &estimate->totals;
    struct feature *total = &totals->items[totals->n];

    total->min = total->max = NAN;
    if (PLACE_FIELDS(total, place, total_fields[estimate->gpu.name != NULL],
                     err))
        return -1;
    if (total_set_add(totals, total->name))
        return 0;
    return place_error(place, err,
                       "total '%s' is unknown to this program, or given twice",
                       total->name);
}

static int read_errors(void *to, const struct json_place *place,
                       struct err *err)
{
    struct error_list *list = to;
    struct errors *errors = &list->items[list->n++];

    *errors = (struct errors){NULL, NAN, NAN, NAN, NAN, NAN, 0};
    return PLACE_FIELDS(errors, place, error_fields, err);
}

static int read_interval(void *to, const struct json_place *place,
                         struct err *err)
{
    struct interval_list *list = to;

    return PLACE_FIELDS(&list->items[list->n++], place, interval_fields, err);
}

/* Reads each object of the list with the name `key`. The list must have min to
 * max entries. */
static int read_list(void *to, const struct json_place *place, const char *key,
                     size_t min, size_t max,
                     int (*read)(void *to, const struct json_place *place,
                                 struct err *err),
                     struct err *err)
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
            read(to, &item, err))
            return -1;
    }
    return 0;
}

static int read_setting(struct model *model, const struct json_place *root,
                        struct err *err)
{
    struct model_range *only = &model->ranges.items[0];
    struct json_place place;

    if (place_object(&place, root, "setting", err) ||
        PLACE_FIELDS(model, &place, setting_fields, err) ||
        (place_has(&place, "environments") &&
         read_list(model, &place, "environments", 0, MODEL_MAX_ENVIRONMENTS,
                   read_environment, err)))
        return -1;
    if (!place_has(&place, "batch")) /* files of version 2 or later */
        return read_list(model, &place, "ranges", 1, MODEL_MAX_RANGES,
                         read_range, err);
    if (place_fields(only, &place, range_fields, 2, err) ||
        PLACE_FIELDS(only, &place, batch_field, err))
        return -1;
    only->batch_max = only->batch_min;
    model->ranges.n = 1;
    return 0;
}

static int read_estimate(struct model *model, const struct json_place *root,
                         struct err *err)
{
    struct estimate *estimate = &model->estimate;
    struct json_place place, gpu;

    if (!place_has(root, "estimate"))
        return 0;
    if (place_object(&place, root, "estimate", err))
        return -1;
    if (place_has(&place, "roofline")
            ? place_object(&gpu, &place, "roofline", err) ||
                  PLACE_FIELDS(&estimate->gpu, &gpu, gpu_fields, err)
            : PLACE_FIELDS(estimate, &place, base_field, err))
        return -1;
    if (PLACE_FIELDS(estimate, &place, ratio_fields, err) ||
        read_list(estimate, &place, "totals", 1, MAX_TOTALS, read_total, err))
        return -1;
    if (estimate->ratio_max < estimate->ratio_min)
        return place_error(&place, err, "ratio_max is below ratio_min");
    return 0;
}

/* Returns true if the bytes of a curve increase from 0, its times do not
 * decrease, and its last line rises. */
static bool is_curve(const struct comm_curve *curve)
{
    uint32_t n = curve->n_knots;

    if (n < 2 || curve->bytes[0] != 0)
        return false;
    for (uint32_t k = 1; k < n; k++)
        if (!(curve->bytes[k] > curve->bytes[k - 1]) ||
            !(curve->us[k] >= curve->us[k - 1]))
            return false;
    return curve->us[n - 1] > curve->us[n - 2];
}

static int read_curve(void *to, const struct json_place *place, struct err *err)
{
    struct comm_curves *fit = to;
    struct comm_curve *curve = &fit->curves[fit->n_curves++];
    const json_t *knots;

    if (PLACE_FIELDS(curve, place, curve_fields, err) ||
        place_list(&knots, place, "knots", err))
        return -1;
    for (size_t k = 0; k < json_array_size(knots) && k < COMM_MAX_KNOTS; k++) {
        const json_t *knot = json_array_get(knots, k);
        char key[16];

        snprintf(key, sizeof(key), "knots[%zu]", k);
        if (place_list_double(&curve->bytes[k], place, key, knot, 0, 0,
                              MAX_BYTES, err) ||
            place_list_double(&curve->us[k], place, key, knot, 1, 0, MAX_US,
                              err))
            return -1;
        curve->n_knots++;
    }
    if (json_array_size(knots) > COMM_MAX_KNOTS || !is_curve(curve))
        return place_error(place, err,
                           "a curve needs 2 to %d knots [BYTES, US] that rise "
                           "from 0 bytes",
                           COMM_MAX_KNOTS);
    return 0;
}

static int read_comm(struct model *model, const struct json_place *root,
                     struct err *err)
{
    struct comm_curves *fit = &model->comm;
    struct json_place place;
    struct line line;

    model->has_comm = place_has(root, "comm");
    if (!model->has_comm)
        return 0;
    if (place_object(&place, root, "comm", err) ||
        PLACE_FIELDS(fit, &place, comm_fields, err))
        return -1;
    if (place_has(&place, "curves"))
        return read_list(fit, &place, "curves", 1, COMM_MAX_CURVES, read_curve,
                         err);
    /* A file of version 1 has one curve, which is a line and holds for any
     * number of ranks. */
    if (PLACE_FIELDS(&line, &place, line_fields, err))
        return -1;
    fit->curves[0] = comm_line(line.alpha_us, line.gbps);
    fit->n_curves = 1;
    return 0;
}

/* Reads the shape of the net. A model with a roofline may have no net. */
static int read_shape(struct model *model, const struct json_place *root,
                      struct err *err)
{
    struct mlp_shape *shape = &model->mlp.shape;
    struct json_place place;

    if (model->estimate.gpu.name && !place_has(root, "shape"))
        return 0;
    shape->n_features = model->features.n;
    if (place_object(&place, root, "shape", err) ||
        PLACE_FIELDS(shape, &place, shape_fields, err))
        return -1;
    if (shape->is_monotone && !model->estimate.gpu.name)
        return place_error(&place, err, "a monotone net needs a roofline");
    model->estimate.is_monotone = shape->is_monotone;
    shape->n_totals = estimate_head_inputs(&model->estimate);
    return 0;
}

int model_from_json(struct model *model, const json_t *json, const char *where,
                    struct arena *arena, struct err *err)
{
    struct json_place root, place;
    struct head head = {0};

    if (place_root(&root, json, where, arena, err))
        return -1;
    root.is_strict = true;
    if (PLACE_FIELDS(&head, &root, head_fields, err))
        return -1;
    model->basis = head.is_measured ? BASIS_MEASURED : BASIS_MODELLED;
    if (PLACE_FIELDS(model, &root, model_fields, err) ||
        read_setting(model, &root, err) ||
        read_list(&model->features, &root, "features", 1, MAX_FEATURES,
                  read_feature, err) ||
        read_estimate(model, &root, err) || read_shape(model, &root, err) ||
        place_object(&place, &root, "training", err) ||
        PLACE_FIELDS(&model->training, &place, training_fields, err) ||
        read_list(&model->errors, &root, "errors", 0, MODEL_MAX_ERRORS,
                  read_errors, err) ||
        (place_has(&root, "intervals") &&
         read_list(&model->intervals, &root, "intervals", 1, MAX_INTERVALS,
                   read_interval, err)) ||
        (place_has(&root, "choice") &&
         read_list(&model->choice, &root, "choice", 1, N_MODEL_KINDS,
                   read_errors, err)))
        return -1;
    return read_comm(model, &root, err) ||
                   products_from_json(&model->products, &root, arena, err)
               ? -1
               : 0;
}
