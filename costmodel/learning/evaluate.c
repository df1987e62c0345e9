/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/evaluate.h"

#include "base/ranked.h"
#include "base/stats.h"
#include "costmodel/formulas/linear.h"
#include "costmodel/learning/mlp_train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 512 /* samples or tables predicted at a time */
#define RIDGE 1e-6

static const char *const predictor_names[N_PREDICTORS] = {
    NULL, "sum of measured singles", "sum of predicted singles",
    "linear model"};

struct errors errors_of(const char *name, const double *want, const double *got,
                        size_t n)
{
    struct errors errors = {.name = name, .n = n};
    double *apes = mem_alloc(n, sizeof(*apes));

    stats_apes(apes, want, got, n);
    errors.mse = stats_mse(want, got, n);
    errors.mape = stats_mean(apes, n);
    errors.median_ape = stats_median(apes, n);
    errors.p90_ape = stats_quantile(apes, n, 0.9);
    errors.kendall_tau = stats_kendall_tau(want, got, n);
    mem_free(apes);
    return errors;
}

static bool keep_held_out(const struct sample *sample)
{
    return sample_trains(sample) && sample->kind == SAMPLE_FUSED &&
           sample_split(sample) == SPLIT_HELD_OUT;
}

double *model_predicts(struct dataset *dataset, const struct model *model,
                       const struct sample *samples, size_t n,
                       bool (*keep)(const struct sample *sample),
                       struct arena *arena)
{
    struct mlp_work work;
    struct arena scratch = {0};
    double *ms;

    dataset_init(dataset, &model->features, &model->estimate, samples, n, keep,
                 arena);
    ms = ARENA_NEW(arena, double, dataset->n_samples);
    if (!model->mlp.n_params) {
        for (size_t i = 0; i < dataset->n_samples; i++)
            ms[i] = estimate_ms(&model->estimate,
                                dataset->sums + i * dataset->width);
        return ms;
    }
    dataset_scale(dataset, 1, CHUNK, &scratch);
    mlp_work_init(&work, &model->mlp, dataset->max_rows, CHUNK, &scratch);
    for (size_t begin = 0; begin < dataset->n_samples; begin += CHUNK) {
        dataset_batch(dataset, begin);
        mlp_forward(&model->mlp, &dataset->batch, &work);
        for (size_t i = 0; i < dataset->batch.n_samples; i++)
            ms[begin + i] =
                estimate_ratio(&model->estimate, (double)work.out[3][i],
                               dataset->unit[begin + i]) *
                dataset->unit[begin + i];
    }
    arena_release(&scratch);
    return ms;
}

/* Returns for each sample the sum of the model's single-table predictions. */
static double *predict_singles(const struct model *model,
                               const struct dataset *dataset,
                               struct arena *arena)
{
    const uint32_t n = dataset->first[dataset->n_samples];
    struct sample *alone = ARENA_NEW(arena, struct sample, n), *next = alone;
    double *ms = ARENA_NEW(arena, double, dataset->n_samples), *single;
    struct dataset singles;

    for (size_t i = 0; i < dataset->n_samples; i++)
        for (uint32_t t = 0; t < dataset->samples[i]->n_tables; t++, next++) {
            *next = *dataset->samples[i];
            next->tables += t;
            next->n_tables = 1;
        }
    single = model_predicts(&singles, model, alone, n, sample_trains, arena);
    for (size_t i = 0; i < dataset->n_samples; i++)
        for (uint32_t j = dataset->first[i]; j < dataset->first[i + 1]; j++)
            ms[i] += single[j];
    return ms;
}

/* Returns the inputs of the linear model for each sample. They are sums of the
 * standardised features over the tables, number of tables, and 1. */
static double *linear_inputs(const struct dataset *dataset, struct arena *arena)
{
    const struct feature *features = dataset->features->items;
    const size_t n = dataset->features->n, n_columns = n + 2;
    double *x = ARENA_NEW(arena, double, dataset->n_samples *n_columns);

    for (size_t i = 0; i < dataset->n_samples; i++) {
        double *row = x + i * n_columns;

        for (uint32_t j = dataset->first[i]; j < dataset->first[i + 1]; j++)
            for (size_t f = 0; f < n; f++)
                row[f] += (dataset->rows[j * dataset->n_columns + f] -
                           features[f].mean) /
                          features[f].std;
        row[n] = dataset->first[i + 1] - dataset->first[i];
        row[n + 1] = 1;
    }
    return x;
}

static double *predict_linear(const struct dataset *train,
                              const struct dataset *held_out,
                              struct arena *arena)
{
    const size_t n_columns = train->features->n + 2;
    const double *x = linear_inputs(train, arena);
    double *w = ARENA_NEW(arena, double, n_columns);
    double *ms = ARENA_NEW(arena, double, held_out->n_samples);

    linear_fit(w, x, train->ms, train->n_samples, n_columns, RIDGE);
    x = linear_inputs(held_out, arena);
    for (size_t i = 0; i < held_out->n_samples; i++)
        for (size_t k = 0; k < n_columns; k++)
            ms[i] += w[k] * x[i * n_columns + k];
    return ms;
}

/* Compares two settings of one device. */
static int compare_settings(const struct sample_setting *x,
                            const struct sample_setting *y)
{
    const uint64_t a[] = {x->batch, x->precision, x->optimizer};
    const uint64_t b[] = {y->batch, y->precision, y->optimizer};
    int order;

    if ((order = ranked_compare(a, b, 3)) ||
        (order = strcmp(setting_known(x->host), setting_known(y->host))) ||
        (order = strcmp(setting_known(x->driver), setting_known(y->driver))))
        return order;
    return strcmp(setting_known(x->cuda), setting_known(y->cuda));
}

/* Compares samples by setting, case, kind and part. */
static int compare_samples(const void *a, const void *b)
{
    const struct sample *x = *(const struct sample *const *)a;
    const struct sample *y = *(const struct sample *const *)b;
    int order = compare_settings(x->setting, y->setting);

    return order ? order : sample_compare(x, y);
}

/* The samples are sorted so that the fused sample of a case comes first,
 * followed by the samples of its single tables and by its repeats. */
struct errors evaluate_cases(const struct sample *samples, size_t n,
                             double *sums)
{
    const struct sample **ordered = mem_alloc(n, sizeof(*ordered));
    double *first = mem_alloc(n, 2 * sizeof(*first)), *again = first + n;
    struct errors repeats = {.name = "repeated measurement",
                             .mse = NAN,
                             .p90_ape = NAN,
                             .kendall_tau = NAN};
    const struct sample *fused = NULL;
    uint32_t n_singles = 0;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        ordered[i] = &samples[i];
        sums[i] = NAN;
    }
    qsort(ordered, n, sizeof(*ordered), compare_samples);
    for (size_t i = 0; i < n; i++) {
        const struct sample *sample = ordered[i];
        const double ms = sample->total.median_ms;

        if (sample->kind == SAMPLE_FUSED) {
            fused = sample;
            n_singles = 0;
            sum = 0;
        }
        if (!fused || sample->seed != fused->seed ||
            sample->case_idx != fused->case_idx ||
            compare_settings(sample->setting, fused->setting))
            continue;
        if (sample->kind == SAMPLE_SINGLE && sample_trains(sample) &&
            sample->part == n_singles + 1) {
            sum += ms;
            if (++n_singles == fused->n_tables)
                sums[fused - samples] = sum;
        }
        if (sample->kind == SAMPLE_REPEAT && ms > 0 &&
            !(sample->flags & SAMPLE_THROTTLED) && sample_trains(fused)) {
            first[repeats.n] = fused->total.median_ms;
            again[repeats.n++] = ms;
        }
    }
    stats_apes(again, first, again, repeats.n);
    repeats.mape = stats_mean(again, repeats.n);
    repeats.median_ape = stats_median(again, repeats.n);
    mem_free(first);
    mem_free(ordered);
    return repeats;
}

/* Held-out samples and the predictions of each predictor. */
struct judged_sample {
    const struct dataset *held_out;
    const char *kind; /* name of the kind of model */
    /* [n_samples] for each predictor. The sum of measured single tables is NAN
     * if one of the tables was not measured alone. */
    double *predicted[N_PREDICTORS];
    bool *is_kept; /* [n_samples]; true for samples that are evaluated */
    struct arena *arena;
};

static struct errors errors_of_kept(const struct judged_sample *judged,
                                    enum predictor predictor)
{
    const size_t n = judged->held_out->n_samples;
    double *want = ARENA_NEW(judged->arena, double, n);
    double *got = ARENA_NEW(judged->arena, double, n);
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++)
        if (judged->is_kept[i]) {
            want[n_kept] = judged->held_out->ms[i];
            got[n_kept++] = judged->predicted[predictor][i];
        }
    return errors_of(predictor == PREDICTOR_NET ? judged->kind
                                                : predictor_names[predictor],
                     want, got, n_kept);
}

static void judge_singles(struct evaluation *evaluation,
                          const struct judged_sample *judged)
{
    static const enum predictor sums[] = {PREDICTOR_MEASURED_SINGLES,
                                          PREDICTOR_PREDICTED_SINGLES};
    const struct dataset *held_out = judged->held_out;

    for (int k = 0; k < 2 && !evaluation->singles.n; k++) {
        struct errors net, singles;

        for (size_t i = 0; i < held_out->n_samples; i++)
            judged->is_kept[i] = held_out->samples[i]->n_tables > 1 &&
                                 !isnan(judged->predicted[sums[k]][i]);
        net = errors_of_kept(judged, PREDICTOR_NET);
        singles = errors_of_kept(judged, sums[k]);
        evaluation->singles.n = net.n;
        evaluation->singles.net_mape = net.mape;
        evaluation->singles.sum_mape = singles.mape;
        evaluation->singles.is_measured = !k;
    }
}

static bool is_published(const struct sample_setting *setting)
{
    return setting->batch == 65536 && setting->precision == PRECISION_FP32 &&
           setting->optimizer == OPTIMIZER_SGD;
}

/* Adds a setting class with the errors of the net. The class holds either the
 * samples of a training range, or the samples at the published setting, which
 * is a range of one batch. */
static void judge_class(struct evaluation *evaluation,
                        const struct model *model,
                        const struct judged_sample *judged,
                        const struct model_range *range, bool published)
{
    const struct dataset *held_out = judged->held_out;
    struct setting_class *class = &evaluation->classes[evaluation->n_classes++];

    *class = (struct setting_class){
        .is_published = published, .range = *range, .is_trained = true};
    for (size_t i = 0; i < held_out->n_samples; i++) {
        const struct sample_setting *setting = held_out->samples[i]->setting;
        const bool is_of_class = is_published(setting) == published &&
                                 setting->precision == range->precision &&
                                 setting->optimizer == range->optimizer;

        judged->is_kept[i] = is_of_class;
        if (is_of_class && !model_covers(model, setting->precision,
                                         setting->optimizer, setting->batch))
            class->is_trained = false;
    }
    class->errors = errors_of_kept(judged, PREDICTOR_NET);
}

/* Fills the list of setting classes. The list stays empty if there is only one
 * class. */
static void judge_classes(struct evaluation *evaluation,
                          const struct model *model,
                          const struct judged_sample *judged)
{
    const struct dataset *held_out = judged->held_out;
    /* ranges[1] is for the published setting, ranges[0] for all other
     * settings. */
    struct range_list ranges[2] = {0};

    for (size_t i = 0; i < held_out->n_samples; i++) {
        const struct sample_setting *setting = held_out->samples[i]->setting;

        range_list_add(&ranges[is_published(setting)], setting);
    }
    for (int published = 1; published >= 0; published--)
        for (size_t r = 0; r < ranges[published].n; r++)
            judge_class(evaluation, model, judged, &ranges[published].items[r],
                        published);
    if (evaluation->n_classes == 1)
        evaluation->n_classes = 0;
}

/* Fills the coverage of the model's own intervals, of which the first is for
 * all classes. Also fills the intervals that the errors on the held-out samples
 * would give. */
static void judge_intervals(struct evaluation *evaluation,
                            const struct model *model,
                            const struct dataset *held_out,
                            const double *predicted)
{
    const struct interval_list *has = &model->intervals;

    evaluation->covered = *has;
    for (size_t c = 0; c < has->n; c++) {
        struct interval *covered = &evaluation->covered.items[c];
        size_t n_within = 0;

        covered->n = 0;
        for (size_t i = 0; i < held_out->n_samples; i++) {
            const struct interval *own =
                interval_find(has, interval_class_of(held_out->samples[i]));

            if (c && own != &has->items[c])
                continue;
            covered->n++;
            n_within += interval_error(held_out->ms[i], predicted[i]) <=
                        own->error_frac;
        }
        covered->within_frac = (double)n_within / (double)covered->n;
    }
    evaluation->intervals =
        intervals_make("held-out samples", held_out->samples, held_out->ms,
                       predicted, held_out->n_samples, 1);
}

void evaluate_model(struct evaluation *evaluation, const struct model *model,
                    const struct sample *samples, size_t n)
{
    struct dataset held_out, train;
    struct arena arena = {0};
    struct judged_sample judged = {.held_out = &held_out,
                                   .kind = model_kind_names[model_kind(model)],
                                   .arena = &arena};
    double **predicted = judged.predicted, *sums;

    memset(evaluation, 0, sizeof(*evaluation));
    evaluation->disturbed = sample_disturbed(samples, n);
    sums = ARENA_NEW(&arena, double, n);
    evaluation->repeats = evaluate_cases(samples, n, sums);
    evaluation->sentinels = sample_sentinels(samples, n);
    predicted[PREDICTOR_NET] =
        model_predicts(&held_out, model, samples, n, keep_held_out, &arena);
    dataset_init(&train, &model->features, &model->estimate, samples, n,
                 sample_is_train, &arena);
    n = held_out.n_samples;
    judged.is_kept = ARENA_NEW(&arena, bool, n);
    predicted[PREDICTOR_MEASURED_SINGLES] = ARENA_NEW(&arena, double, n);
    predicted[PREDICTOR_PREDICTED_SINGLES] =
        predict_singles(model, &held_out, &arena);
    predicted[PREDICTOR_LINEAR] = predict_linear(&train, &held_out, &arena);
    for (size_t i = 0; i < n; i++)
        predicted[PREDICTOR_MEASURED_SINGLES][i] =
            sums[held_out.samples[i] - samples];
    for (size_t p = 0; p < N_PREDICTORS; p++) {
        for (size_t i = 0; i < n; i++)
            judged.is_kept[i] =
                (p != PREDICTOR_MEASURED_SINGLES || !isnan(predicted[p][i])) &&
                (p != PREDICTOR_LINEAR || train.n_samples);
        evaluation->errors[p] = errors_of_kept(&judged, (enum predictor)p);
    }
    if (model->mlp.n_params)
        judge_singles(evaluation, &judged);
    judge_classes(evaluation, model, &judged);
    judge_intervals(evaluation, model, &held_out, predicted[PREDICTOR_NET]);
    arena_release(&arena);
}

size_t evaluate_n_held_out(const struct sample *samples, size_t n)
{
    size_t n_held_out = 0;

    for (size_t i = 0; i < n; i++)
        n_held_out += keep_held_out(&samples[i]);
    return n_held_out;
}

const char *evaluation_lost_text(const struct evaluation *evaluation,
                                 struct arena *arena)
{
    if (!evaluation->singles.n ||
        evaluation->singles.net_mape <= evaluation->singles.sum_mape)
        return NULL;
    return arena_printf(
        arena,
        "its mean error of %.2f %% on %zu held-out cases of several tables is "
        "above the %.2f %% of the sum of their single tables as %s",
        100 * evaluation->singles.net_mape, evaluation->singles.n,
        100 * evaluation->singles.sum_mape,
        evaluation->singles.is_measured ? "measured" : "it predicts them");
}

/* Gain on one held-out sample, and the case that the sample belongs to. */
struct gain {
    uint64_t seed, case_idx;
    double gain;
};

static int compare_cases(const void *a, const void *b)
{
    const struct gain *x = a, *y = b;

    return ranked_compare((const uint64_t[]){x->seed, x->case_idx},
                          (const uint64_t[]){y->seed, y->case_idx}, 2);
}

/* Returns the standard error of the mean gain. Gains within a case are
 * correlated, since a case is measured in several settings. So only the sums
 * over cases are assumed to be independent, not the single samples (Liang and
 * Zeger 1986). */
static double clustered_se(struct gain *gains, size_t n, double mean)
{
    double squares = 0, sum = 0;
    size_t n_cases = 0;

    qsort(gains, n, sizeof(*gains), compare_cases);
    for (size_t i = 0; i < n; i++) {
        sum += gains[i].gain - mean;
        if (i + 1 < n && !compare_cases(&gains[i], &gains[i + 1]))
            continue;
        squares += sum * sum;
        sum = 0;
        n_cases++;
    }
    if (n_cases < 2)
        return NAN;
    return sqrt(squares * (double)n_cases / (double)(n_cases - 1)) / (double)n;
}

void pair_errors(struct paired *paired, const struct sample *const *samples,
                 const double *ms, const double *old_predicted,
                 const double *new_predicted, size_t n)
{
    struct gain *gains = mem_alloc(n, sizeof(*gains));
    double *apes = mem_alloc(n, 2 * sizeof(*apes));

    stats_apes(apes, ms, old_predicted, n);
    stats_apes(apes + n, ms, new_predicted, n);
    *paired = (struct paired){.n = n,
                              .old_mape = stats_mean(apes, n),
                              .new_mape = stats_mean(apes + n, n)};
    paired->gain = paired->old_mape - paired->new_mape;
    for (size_t i = 0; i < n; i++)
        gains[i] = (struct gain){samples[i]->seed, samples[i]->case_idx,
                                 apes[i] - apes[n + i]};
    paired->gain_se = clustered_se(gains, n, paired->gain);
    mem_free(apes);
    mem_free(gains);
}

void evaluate_pair(struct paired *paired, const struct model *old_model,
                   const struct model *new_model, const struct sample *samples,
                   size_t n)
{
    const struct model *models[2] = {old_model, new_model};
    struct dataset held_out;
    struct arena arena = {0};
    double *predicted[2];

    for (int m = 0; m < 2; m++)
        predicted[m] = model_predicts(&held_out, models[m], samples, n,
                                      keep_held_out, &arena);
    pair_errors(paired, held_out.samples, held_out.ms, predicted[0],
                predicted[1], held_out.n_samples);
    arena_release(&arena);
}

json_t *held_out_to_json(const struct model *model,
                         const struct sample *samples, size_t n)
{
    json_t *list = json_array();
    struct dataset held_out;
    struct arena arena = {0};
    double *predicted;

    predicted =
        model_predicts(&held_out, model, samples, n, keep_held_out, &arena);
    for (size_t i = 0; i < held_out.n_samples; i++) {
        const struct sample *sample = held_out.samples[i];
        const struct sample_setting *setting = sample->setting;
        double lookups = 0, columns = 0, bytes = 0;

        for (uint32_t t = 0; t < sample->n_tables; t++) {
            const struct sample_table *table = &sample->tables[t];

            lookups += table->pooling_factor * setting->batch;
            columns += table->dim;
            bytes += (double)table->n_rows * table->dim *
                     precision_bytes(setting->precision);
        }
        json_array_append_new(
            list,
            json_pack("{s:f, s:f, s:I, s:I, s:f, s:f, s:f, s:s, s:s}",
                      "measured_ms", held_out.ms[i], "predicted_ms",
                      predicted[i], "tables", (json_int_t)sample->n_tables,
                      "batch", (json_int_t)setting->batch, "lookups", lookups,
                      "columns", columns, "weight_bytes", bytes, "precision",
                      precision_names[setting->precision], "optimizer",
                      optimizer_names[setting->optimizer]));
    }
    arena_release(&arena);
    return list;
}

bool paired_suffices(const struct paired *paired,
                     const struct least_gain *least, double *needed)
{
    *needed = least->in_errors ? least->value * paired->gain_se : least->value;
    return paired->gain > 0 && paired->gain >= *needed;
}

void evaluation_store(struct model *model, const struct evaluation *evaluation)
{
    struct error_list *errors = &model->errors;

    errors->n = 0;
    for (size_t p = 0; p < N_PREDICTORS; p++)
        if (evaluation->errors[p].n)
            errors->items[errors->n++] = evaluation->errors[p];
    if (evaluation->repeats.n)
        errors->items[errors->n++] = evaluation->repeats;
    if (evaluation->intervals.n &&
        (!model->intervals.n ||
         model->intervals.items->n <= evaluation->intervals.items->n))
        model->intervals = evaluation->intervals;
}
