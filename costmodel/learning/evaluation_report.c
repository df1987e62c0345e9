/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/evaluation_report.h"

#include "base/figures.h"
#include "costmodel/modelfile/model_json.h"
#include "costmodel/modelfile/model_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Writes a name such as "fp16 sgd 1024-65536", with a "*" if the model was not
 * trained on the class. */
static void class_name(char *name, size_t size,
                       const struct setting_class *class)
{
    const struct model_range *range = &class->range;
    const char *precision = precision_names[range->precision];
    const char *optimizer = range->optimizer == OPTIMIZER_ROWWISE_ADAGRAD
                                ? "rowwise"
                                : optimizer_names[range->optimizer];
    const char *mark = class->is_trained ? "" : "*";

    if (class->is_published)
        snprintf(name, size, "published%s", mark);
    else if (range->batch_min == range->batch_max)
        snprintf(name, size, "%s %s %u%s", precision, optimizer,
                 range->batch_min, mark);
    else
        snprintf(name, size, "%s %s %u-%u%s", precision, optimizer,
                 range->batch_min, range->batch_max, mark);
}

static void print_classes(const struct evaluation *evaluation, struct buf *out)
{
    size_t n_untrained = 0;
    char name[64];

    buf_printf(out, "the %s, by setting\n",
               evaluation->errors[PREDICTOR_NET].name);
    for (size_t c = 0; c < evaluation->n_classes; c++) {
        const struct setting_class *class = &evaluation->classes[c];
        struct errors errors = class->errors;

        class_name(name, sizeof(name), class);
        errors.name = name;
        figures_row(error_figures, &errors, out);
        n_untrained += !class->is_trained;
    }
    if (n_untrained)
        buf_printf(out, "* setting that the model was not trained on\n");
}

#define INTERVAL(member) MEMBER_OF(struct interval, member)
static const struct figure interval_figures[] = {
    {"class", "90 % intervals", -26, 0, FIGURE_PLAIN, INTERVAL(class)},
    {"samples", "n", 6, 0, FIGURE_PLAIN, INTERVAL(n)},
    {"error_frac", "+- %", 10, 2, FIGURE_PERCENT, INTERVAL(error_frac)},
    {"pair_error_frac", "pair %", 7, 2, FIGURE_PERCENT,
     INTERVAL(pair_error_frac)},
    {"within_frac", "within %", 8, 2, FIGURE_PERCENT, INTERVAL(within_frac)},
    {0},
};

json_t *covered_to_json(const struct evaluation *evaluation)
{
    return FIGURES_LIST(interval_figures, evaluation->covered.items,
                        evaluation->covered.n);
}

/* Prints the number of samples of a disturbed machine, the spread of their
 * times, and the spread of the other times. */
static void print_disturbed(const struct disturbed_samples *disturbed,
                            struct buf *out)
{
    if (!disturbed->n_left_out && !disturbed->n_used)
        return;
    buf_printf(out, "disturbed       %zu samples used, %zu left out",
               disturbed->n_used, disturbed->n_left_out);
    if (isfinite(disturbed->spread_frac))
        buf_printf(out, "; spread (p10 to p90) %.2f %%",
                   100 * disturbed->spread_frac);
    if (isfinite(disturbed->others_spread_frac))
        buf_printf(out, ", others %.2f %%",
                   100 * disturbed->others_spread_frac);
    buf_printf(out, "\n");
}

void evaluation_print(const struct evaluation *evaluation, struct buf *out)
{
    FIGURES_TABLE(error_figures, evaluation->errors, N_PREDICTORS, out);
    if (evaluation->n_classes)
        print_classes(evaluation, out);
    FIGURES_TABLE(interval_figures, evaluation->covered.items,
                  evaluation->covered.n, out);
    if (evaluation->repeats.n)
        buf_printf(
            out, "repeat error    median %.2f %%, mean %.2f %%, of %zu cases\n",
            100 * evaluation->repeats.median_ape,
            100 * evaluation->repeats.mape, evaluation->repeats.n);
    if (evaluation->sentinels.n > 1)
        buf_printf(out, "reference cases spread (p10 to p90) %.2f %%, of %zu\n",
                   100 * evaluation->sentinels.spread_frac,
                   evaluation->sentinels.n);
    print_disturbed(&evaluation->disturbed, out);
}

/* Members of a setting class that are written next to its errors and range.
 * They are never read. */
#define CLASS(member) MEMBER_OF(struct setting_class, member)
static const struct place_field class_fields[] = {
    {"published", CLASS(is_published), true, 0, 0, NULL},
    {"trained", CLASS(is_trained), true, 0, 0, NULL},
};

#define EVALUATION(member) MEMBER_OF(struct evaluation, member)
static const struct place_field evaluation_fields[] = {
    {"repeats", EVALUATION(repeats.n), true, 0, 0, NULL},
    {"repeat_median_ape", EVALUATION(repeats.median_ape), true, 0, 0, NULL},
    {"repeat_mape", EVALUATION(repeats.mape), true, 0, 0, NULL},
    {"sentinels", EVALUATION(sentinels.n), true, 0, 0, NULL},
    {"sentinel_spread_frac", EVALUATION(sentinels.spread_frac), true, 0, 0,
     NULL},
    {"throttled", EVALUATION(disturbed.n_left_out), true, 0, 0, NULL},
    {"disturbed_used", EVALUATION(disturbed.n_used), true, 0, 0, NULL},
    {"disturbed_spread_frac", EVALUATION(disturbed.spread_frac), true, 0, 0,
     NULL},
    {"others_spread_frac", EVALUATION(disturbed.others_spread_frac), true, 0, 0,
     NULL},
};

json_t *evaluation_to_json(const struct evaluation *evaluation)
{
    json_t *root = json_object(), *classes = json_array();
    json_t *held_out = json_array();

    for (size_t c = 0; c < evaluation->n_classes; c++) {
        const struct setting_class *class = &evaluation->classes[c];
        json_t *object = errors_to_json(&class->errors);

        PLACE_SET_FIELDS(object, class, class_fields);
        /* "samples" is written with the range and with the errors, which have
         * the same number */
        model_range_to_json(&class->range, object);
        json_array_append_new(classes, object);
    }
    for (size_t p = 0; p < N_PREDICTORS; p++)
        json_array_append_new(held_out, errors_to_json(&evaluation->errors[p]));
    json_object_set_new(root, "held_out", held_out);
    json_object_set_new(root, "settings", classes);
    PLACE_SET_FIELDS(root, evaluation, evaluation_fields);
    return root;
}
