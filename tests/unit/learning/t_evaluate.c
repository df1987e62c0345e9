/* SPDX-License-Identifier: MIT */
/* Evaluation of models: the paired test of two models, and the net against the
 * sum of single tables. */
#include "costmodel/learning/evaluate.h"

#include "costmodel/learning/dataset.h"
#include "costmodel/learning/evaluation_report.h"
#include "costmodel/learning/train.h"
#include "tests/predict_samples.h"
#include "tests/synthetic_samples.h"
#include "tests/tap.h"

#define N_CASES 300

static void train(struct model *model, const struct sample *samples, size_t n,
                  unsigned epochs, struct arena *arena)
{
    struct train_options options;
    struct err err = {0};

    train_options_init(&options);
    options.epochs = epochs;
    if (train_fit(model, samples, n, &options, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
}

/* Computes the paired test by its definition, from both models' predictions of
 * all samples. */
static struct paired by_hand(const struct model *old_model,
                             const struct model *new_model,
                             const struct sample *samples, size_t n,
                             struct arena *arena)
{
    double *old_ms = ARENA_NEW(arena, double, n);
    double *new_ms = ARENA_NEW(arena, double, n);
    struct paired paired = {0};
    double squares = 0;

    predict_samples(old_model, samples, n, old_ms);
    predict_samples(new_model, samples, n, new_ms);
    for (size_t i = 0; i < n; i++) {
        const double ms = samples[i].total.median_ms;
        const double old_error = fabs(old_ms[i] / ms - 1);
        const double new_error = fabs(new_ms[i] / ms - 1);

        if (samples[i].kind != SAMPLE_FUSED || samples[i].case_idx % 10 != 9 ||
            samples[i].flags)
            continue;
        paired.n++;
        paired.old_mape += old_error;
        paired.new_mape += new_error;
        paired.gain += old_error - new_error;
        squares += (old_error - new_error) * (old_error - new_error);
    }
    paired.old_mape /= (double)paired.n;
    paired.new_mape /= (double)paired.n;
    paired.gain /= (double)paired.n;
    paired.gain_se =
        sqrt((squares / (double)paired.n - paired.gain * paired.gain) /
             (double)(paired.n - 1));
    return paired;
}

static void test_pair(struct sample *samples, size_t n, struct arena *arena)
{
    struct model poor, good;
    struct paired paired, want;
    struct evaluation evaluation;
    struct sample *twice;
    double needed;

    /* the machine was disturbed during two of the samples */
    for (size_t i = 0; i < n; i++)
        if (samples[i].case_idx % 100 == 19)
            samples[i].flags = SAMPLE_THROTTLED;
    train(&poor, samples, n, 1, arena);
    train(&good, samples, n, 30, arena);
    want = by_hand(&poor, &good, samples, n, arena);
    evaluate_pair(&paired, &poor, &good, samples, n);
    is_i64((int64_t)paired.n, N_CASES / 10 - N_CASES / 100, "held-out cases");
    is_i64((int64_t)evaluate_n_held_out(samples, n), (int64_t)paired.n,
           "both counts are equal");
    is_near(paired.old_mape, want.old_mape, 1e-6, "error of the old model");
    is_near(paired.new_mape, want.new_mape, 1e-6, "error of the new model");
    is_near(paired.gain, want.gain, 1e-6, "the gain");
    is_near(paired.gain_se, want.gain_se, 1e-6, "its standard error");
    ok(paired.gain > 2 * paired.gain_se, "more training is better: %g +- %g",
       paired.gain, paired.gain_se);
    ok(paired_suffices(&paired, &(struct least_gain){2, true}, &needed),
       "better by two standard errors");
    is_near(needed, 2 * paired.gain_se, 1e-12, "the gain that is needed");
    ok(!paired_suffices(&paired, &(struct least_gain){1, false}, &needed) &&
           needed == 1,
       "not by a hundred points");
    evaluate_model(&evaluation, &good, samples, n);
    is_near(evaluation.errors[PREDICTOR_NET].mape, paired.new_mape, 1e-12,
            "the error that an evaluation has");
    twice = ARENA_NEW(arena, struct sample, 2 * n);
    memcpy(twice, samples, n * sizeof(*twice));
    memcpy(twice + n, samples, n * sizeof(*twice));
    evaluate_pair(&paired, &poor, &good, twice, 2 * n);
    is_i64((int64_t)paired.n, 2 * (int64_t)want.n, "each sample twice");
    is_near(paired.gain_se, want.gain_se, 1e-6,
            "twice the samples give the same standard error");
    evaluate_pair(&paired, &good, &good, samples, n);
    ok(paired.gain == 0 && paired.gain_se == 0, "a model against itself");
    ok(!paired_suffices(&paired, &(struct least_gain){0, false}, &needed),
       "to stay the same is not enough");
    evaluate_pair(&paired, &poor, &good, samples, 0);
    ok(!paired.n && isnan(paired.gain), "nothing held out, nothing gained");
}

/* Copies all samples except those of the given kind, and returns their
 * number. */
static size_t without(struct sample *out, const struct sample *samples,
                      size_t n, enum sample_kind kind)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++)
        if (samples[i].kind != kind)
            out[n_kept++] = samples[i];
    return n_kept;
}

static double sum_of(const json_t *list, const char *key)
{
    const json_t *entry;
    double sum = 0;
    size_t i;

    json_array_foreach(list, i, entry) sum +=
        json_number_value(json_object_get(entry, key));
    return sum;
}

/* The list of held-out samples contains the work (lookups, columns, bytes) and
 * the error of each. */
static void test_held_out(const struct model *model,
                          const struct sample *samples, size_t n,
                          const struct evaluation *evaluation)
{
    json_t *list = held_out_to_json(model, samples, n);
    double lookups = 0, columns = 0, bytes = 0, error = 0;
    const json_t *entry;
    size_t i;

    for (i = 0; i < n; i++) {
        const struct sample *sample = &samples[i];

        if (sample->kind != SAMPLE_FUSED || sample->case_idx % 10 != 9)
            continue;
        for (uint32_t t = 0; t < sample->n_tables; t++) {
            const struct sample_table *table = &sample->tables[t];

            lookups += table->pooling_factor * sample->setting->batch;
            columns += table->dim;
            bytes += (double)table->n_rows * table->dim *
                     precision_bytes(sample->setting->precision);
        }
    }
    json_array_foreach(list, i, entry) error +=
        fabs(json_real_value(json_object_get(entry, "predicted_ms")) /
                 json_real_value(json_object_get(entry, "measured_ms")) -
             1) /
        (double)json_array_size(list);
    is_i64((int64_t)json_array_size(list),
           (int64_t)evaluate_n_held_out(samples, n), "each held-out sample");
    is_near(error, evaluation->errors[PREDICTOR_NET].mape, 1e-9,
            "its error on them");
    is_near(sum_of(list, "lookups"), lookups, 1e-9 * lookups, "look-ups");
    is_near(sum_of(list, "columns"), columns, 1e-9 * columns, "columns");
    is_near(sum_of(list, "weight_bytes"), bytes, 1e-9 * bytes, "weights");
    json_decref(list);
}

/* Returns the mean error of predicting a case as the sum of the model's
 * single-table predictions. */
static double error_of_singles(const struct model *model,
                               const struct sample *samples, size_t n)
{
    double error = 0;
    size_t n_cases = 0;

    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        if (samples[i].kind != SAMPLE_FUSED || samples[i].case_idx % 10 != 9)
            continue;
        for (uint32_t t = 0; t < samples[i].n_tables; t++) {
            struct sample alone = samples[i];
            double ms;

            alone.tables += t;
            alone.n_tables = 1;
            predict_samples(model, &alone, 1, &ms);
            sum += ms;
        }
        error += fabs(sum / samples[i].total.median_ms - 1);
        n_cases++;
    }
    return error / (double)n_cases;
}

static void test_singles(const struct sample *samples, size_t n,
                         struct arena *arena)
{
    struct sample *some = ARENA_NEW(arena, struct sample, n);
    struct evaluation evaluation;
    struct model model;
    size_t n_some;

    train(&model, samples, n, 30, arena);
    evaluate_model(&evaluation, &model, samples, n);
    test_held_out(&model, samples, n, &evaluation);
    is_near(evaluation.errors[PREDICTOR_PREDICTED_SINGLES].mape,
            error_of_singles(&model, samples, n), 1e-5,
            "the sum of the net's single-table predictions");
    ok(evaluation.singles.is_measured &&
           evaluation.singles.net_mape < evaluation.singles.sum_mape,
       "%.1f %% on %zu cases of several tables, where a sum is %.1f %% off",
       100 * evaluation.singles.net_mape, evaluation.singles.n,
       100 * evaluation.singles.sum_mape);
    ok(!evaluation_lost_text(&evaluation, arena), "the net wins");
    evaluation.singles.sum_mape = evaluation.singles.net_mape / 2;
    ok(evaluation_lost_text(&evaluation, arena) != NULL, "or loses");
    evaluation.singles.net_mape = NAN;
    ok(evaluation_lost_text(&evaluation, arena) != NULL, "as with no number");

    n_some = without(some, samples, n, SAMPLE_SINGLE);
    evaluate_model(&evaluation, &model, some, n_some);
    ok(!evaluation.singles.is_measured && evaluation.singles.n > 20,
       "without measured single tables, their predictions are used");
    n_some = without(some, samples, n, SAMPLE_FUSED);
    evaluate_model(&evaluation, &model, some, n_some);
    ok(!evaluation.singles.n && !evaluation_lost_text(&evaluation, arena),
       "nothing to compare");
}

/* Samples that a net may learn from, and samples that show how well a
 * measurement repeats. */
static void test_kept(const struct sample *samples, size_t n,
                      struct arena *arena)
{
    struct sample_table table = {.n_rows = 1, .dim = 4};
    struct sample *some = ARENA_NEW(arena, struct sample, n);
    struct evaluation evaluation;
    struct model model;
    size_t n_repeats = 0;

    for (int kind = 0; sample_kind_names[kind]; kind++) {
        struct sample sample =
            synthetic_sample((enum sample_kind)kind, 0, 0, &table, 1);

        is_i64(sample_trains(&sample),
               kind != SAMPLE_REPEAT && kind != SAMPLE_SENTINEL,
               sample_kind_names[sample.kind]);
        sample.flags = SAMPLE_THROTTLED;
        ok(!sample_trains(&sample),
           "a sample of a disturbed machine does not train");
        sample.flags = 0;
        sample.total.median_ms = 0;
        ok(!sample_trains(&sample), "a sample without a time does not train");
    }
    train(&model, samples, n, 1, arena);
    memcpy(some, samples, n * sizeof(*some));
    evaluate_model(&evaluation, &model, some, n);
    is_i64((int64_t)evaluation.repeats.n, N_CASES / 4, "repeats");
    for (size_t i = 0; i < n; i++)
        if (some[i].kind == SAMPLE_REPEAT && n_repeats++ % 3 == 0)
            some[i].flags = SAMPLE_THROTTLED;
    evaluate_model(&evaluation, &model, some, n);
    is_i64((int64_t)evaluation.repeats.n, N_CASES / 4 - N_CASES / 12,
           "repeats on a disturbed machine do not count");
    for (size_t i = 0; i < n; i++)
        if (some[i].kind == SAMPLE_FUSED)
            some[i].flags = SAMPLE_THROTTLED;
    evaluate_model(&evaluation, &model, some, n);
    is_i64((int64_t)evaluation.repeats.n, 0,
           "repeats of disturbed cases do not count");
    is_i64((int64_t)evaluation.errors[PREDICTOR_NET].n, 0,
           "which judge nothing");
}

/* Cases 9, 29, 49 ... are half of the 30 held-out ones. Here they count as
 * measured at the published setting, on which the model was not trained. */
static void test_classes(const struct sample *samples, size_t n,
                         struct arena *arena)
{
    static const struct {
        bool is_published, is_trained;
        const char *optimizer;
        int64_t batch;
    } WANT[] = {{true, false, "sgd", 65536},
                {false, true, "rowwise_adagrad", 4096}};
    const struct sample_setting published = {
        .device = "cpu:imaginary", .optimizer = OPTIMIZER_SGD, .batch = 65536};
    struct sample *some = ARENA_NEW(arena, struct sample, n);
    struct evaluation evaluation;
    struct model model;
    json_t *root, *list;

    train(&model, samples, n, 1, arena);
    memcpy(some, samples, n * sizeof(*some));
    for (size_t i = 0; i < n; i++)
        if (some[i].case_idx % 20 == 9)
            some[i].setting = &published;
    evaluate_model(&evaluation, &model, some, n);
    root = evaluation_to_json(&evaluation);
    list = json_object_get(root, "settings");
    is_i64((int64_t)json_array_size(list), 2, "two classes");
    for (size_t c = 0; c < 2; c++) {
        const json_t *class = json_array_get(list, c);

        ok(json_is_true(json_object_get(class, "published")) ==
                   WANT[c].is_published &&
               json_is_true(json_object_get(class, "trained")) ==
                   WANT[c].is_trained,
           "class %zu: the published setting comes first, untrained", c);
        is_str(json_string_value(json_object_get(class, "optimizer")),
               WANT[c].optimizer, "its optimizer");
        is_i64(json_integer_value(json_object_get(class, "batch_max")),
               WANT[c].batch, "its batch");
        is_i64(json_integer_value(json_object_get(class, "samples")),
               N_CASES / 20, "half of the held-out cases");
        is_near(json_real_value(json_object_get(class, "mape")),
                evaluation.classes[c].errors.mape, 0, "its own error");
    }
    json_decref(root);
    evaluate_model(&evaluation, &model, samples, n);
    root = evaluation_to_json(&evaluation);
    list = json_object_get(root, "settings");
    ok(json_is_array(list) && !json_array_size(list),
       "no classes if all cases are of one");
    json_decref(root);
}

/* A second host measures the same cases and is three times slower. Single
 * tables and repeats are compared with measurements from the same host. */
static void test_hosts(const struct sample *samples, size_t n,
                       struct arena *arena)
{
    struct sample *both = ARENA_NEW(arena, struct sample, 2 * n);
    struct sample_setting other = synthetic_setting;
    struct evaluation one, two;
    struct model model;

    other.host = "another box";
    for (size_t i = 0; i < n; i++) {
        both[2 * i] = both[2 * i + 1] = samples[i];
        both[2 * i + i % 2].setting = &other;
        both[2 * i + i % 2].total.median_ms *= 3;
    }
    train(&model, samples, n, 1, arena);
    evaluate_model(&one, &model, samples, n);
    evaluate_model(&two, &model, both, 2 * n);
    is_i64((int64_t)two.repeats.n, 2 * (int64_t)one.repeats.n, "two hosts");
    is_near(two.repeats.mape, one.repeats.mape, 1e-9, "repeats as far apart");
    is_near(two.singles.sum_mape, one.singles.sum_mape, 1e-9,
            "single tables have the same error");
}

/* Each feature adds time at its own rate. The linear model recovers this
 * law. */
static void test_linear(const struct sample *samples, size_t n,
                        struct arena *arena)
{
    struct sample *lawful = ARENA_NEW(arena, struct sample, n);
    struct evaluation evaluation;
    struct model model;

    train(&model, samples, n, 1, arena);
    for (size_t i = 0; i < n; i++) {
        double *ms = &lawful[i].total.median_ms;

        lawful[i] = samples[i];
        *ms = 10 + lawful[i].n_tables;
        for (uint32_t t = 0; t < lawful[i].n_tables; t++) {
            struct feature_input input;
            double x[MAX_FEATURES];

            feature_input_of_sample(&input, lawful[i].setting,
                                    &lawful[i].tables[t]);
            feature_set_fill(&model.features, &input, x);
            for (unsigned f = 0; f < model.features.n; f++)
                *ms += 0.02 * (f % 3 + 1) *
                       (x[f] - model.features.items[f].mean) /
                       model.features.items[f].std;
        }
    }
    evaluate_model(&evaluation, &model, lawful, n);
    is_i64((int64_t)evaluation.errors[PREDICTOR_LINEAR].n, N_CASES / 10,
           "a linear law");
    is_near(evaluation.errors[PREDICTOR_LINEAR].mape, 0, 1e-5, "is found");
}

/* A model without intervals covers nothing. evaluation_store gives it intervals
 * from its held-out errors, but keeps existing intervals that were made from
 * more samples. */
static void test_intervals(const struct sample *samples, size_t n,
                           struct arena *arena)
{
    double *predicted = ARENA_NEW(arena, double, n);
    size_t n_of[MAX_INTERVALS] = {0}, n_within_of[MAX_INTERVALS] = {0};
    struct evaluation evaluation;
    const struct interval *own;
    size_t n_within = 0, n_held_out = 0;
    struct model model;

    train(&model, samples, n, 5, arena);
    evaluate_model(&evaluation, &model, samples, n);
    ok(!evaluation.covered.n && evaluation.intervals.n > 1,
       "nothing is covered, %zu intervals", evaluation.intervals.n);
    evaluation_store(&model, &evaluation);
    is_i64((int64_t)model.intervals.n, (int64_t)evaluation.intervals.n,
           "which the model gets");
    /* widened a little, so that no sample lies on the edge */
    for (size_t i = 0; i < model.intervals.n; i++)
        model.intervals.items[i].error_frac *= 1 + 1e-4;
    evaluate_model(&evaluation, &model, samples, n);
    predict_samples(&model, samples, n, predicted);
    for (size_t i = 0; i < n; i++) {
        if (samples[i].kind != SAMPLE_FUSED || samples[i].case_idx % 10 != 9 ||
            samples[i].flags)
            continue;
        own = interval_find(&model.intervals, interval_class_of(&samples[i]));
        n_held_out++;
        n_within += interval_error(samples[i].total.median_ms, predicted[i]) <=
                    own->error_frac;
        n_of[own - model.intervals.items]++;
        n_within_of[own - model.intervals.items] +=
            interval_error(samples[i].total.median_ms, predicted[i]) <=
            own->error_frac;
    }
    for (size_t c = 1; c < model.intervals.n; c++) {
        const struct interval *covered = &evaluation.covered.items[c];

        is_i64((int64_t)covered->n, (int64_t)n_of[c], covered->class);
        is_near(covered->within_frac, (double)n_within_of[c] / (double)n_of[c],
                1e-12, "share of the class within its interval");
    }
    is_str(evaluation.covered.items[0].class, "all", "then all are covered");
    is_i64((int64_t)evaluation.covered.items[0].n, (int64_t)n_held_out,
           "each held-out one");
    is_near(evaluation.covered.items[0].within_frac,
            (double)n_within / (double)n_held_out, 1e-12, "those within");
    ok(evaluation.covered.items[0].within_frac >= 0.9,
       "nine in ten of those that it was made of: %.3f",
       evaluation.covered.items[0].within_frac);
    model.intervals.items[0].n = n_held_out + 1;
    model.intervals.items[0].error_frac = 7;
    evaluation_store(&model, &evaluation);
    is_near(model.intervals.items[0].error_frac, 7, 0,
            "an interval of more samples is kept");
    model.intervals.items[0].n = n_held_out;
    evaluation_store(&model, &evaluation);
    ok(model.intervals.items[0].error_frac < 7,
       "an interval of as many samples is replaced");
}

int main(void)
{
    struct sample *samples;
    struct arena arena = {0};
    size_t n;

    samples = synthetic_samples(&n, N_CASES, 3, &arena);
    test_linear(samples, n, &arena);
    test_kept(samples, n, &arena);
    test_singles(samples, n, &arena);
    test_classes(samples, n, &arena);
    test_hosts(samples, n, &arena);
    test_intervals(samples, n, &arena);
    test_pair(samples, n, &arena);
    arena_release(&arena);
    return tap_done();
}
