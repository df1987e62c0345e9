/* SPDX-License-Identifier: MIT */
/* Training and evaluation on samples that follow a known law. */
#include "costmodel/learning/train.h"

#include "costmodel/learning/choose.h"
#include "costmodel/learning/dataset.h"
#include "costmodel/learning/evaluate.h"
#include "costmodel/modelfile/model_file.h"
#include "tests/predict_samples.h"
#include "tests/simulated_gpu.h"
#include "tests/synthetic_samples.h"
#include "tests/tap.h"

static void test_split(struct arena *arena)
{
    struct dataset dataset;
    struct feature_set features;
    struct estimate estimate = {0};
    struct sample *samples;
    size_t n, n_tables = 0, n_train = 0;
    int together = 1;

    samples = synthetic_samples(&n, 50, 1, arena);
    samples[0].flags = SAMPLE_THROTTLED;
    samples[1].total.median_ms = NAN;
    feature_set_init(&features, FEATURES_STANDARD);
    feature_set_init(&estimate.totals, TOTALS_ALL);
    dataset_init(&dataset, &features, &estimate, samples, n, sample_trains,
                 arena);
    for (size_t i = 0; i < n; i++) {
        n_train += sample_trains(&samples[i]);
        n_tables += sample_trains(&samples[i]) ? samples[i].n_tables : 0;
        together =
            together && sample_split(&samples[i]) ==
                            (samples[i].case_idx % 10 == 9   ? SPLIT_HELD_OUT
                             : samples[i].case_idx % 10 == 8 ? SPLIT_VALIDATION
                                                             : SPLIT_TRAIN);
    }
    ok(together, "a case's samples are on one side");
    ok(!sample_trains(&samples[0]), "a throttled sample does not train");
    ok(!sample_trains(&samples[1]), "a sample without a time does not train");
    is_i64((int64_t)dataset.n_samples, (int64_t)n_train,
           "fused and single samples, no repeats, no sentinels");
    is_i64((int64_t)dataset.first[dataset.n_samples], (int64_t)n_tables,
           "and all of their tables");
}

static void test_fit(struct arena *arena)
{
    struct train_options options;
    struct evaluation e;
    struct model model;
    struct err err = {0};
    const struct sample *samples;
    double ms[3];
    size_t n;

    samples = synthetic_samples(&n, 600, 2, arena);
    train_options_init(&options);
    options.epochs = 100;
    if (!ok(!train_fit(&model, samples, n, &options, arena, &err), "training%s",
            err.msg))
        return;
    evaluate_model(&e, &model, samples, n);
    is_i64((int64_t)e.errors[PREDICTOR_NET].n, 60, "60 fused cases held out");
    ok(e.errors[PREDICTOR_NET].mape < 0.06, "error of the net %.2f %%",
       100 * e.errors[PREDICTOR_NET].mape);
    ok(e.errors[PREDICTOR_MEASURED_SINGLES].mape > 0.2 &&
           e.errors[PREDICTOR_PREDICTED_SINGLES].mape > 0.2,
       "singles add up to too much: %.1f %%, %.1f %%",
       100 * e.errors[PREDICTOR_MEASURED_SINGLES].mape,
       100 * e.errors[PREDICTOR_PREDICTED_SINGLES].mape);
    is_i64((int64_t)e.errors[PREDICTOR_MEASURED_SINGLES].n, 60,
           "each with its single tables");
    is_i64((int64_t)e.repeats.n, 150, "every fourth case repeated");
    is_near(e.repeats.median_ape, 0.02, 1e-12, "repeats are 2 % off");
    is_i64((int64_t)e.sentinels.n, 60, "sentinels");
    is_near(e.sentinels.spread_frac, 0, 0, "which do not drift");
    predict_samples(&model, samples, 3, ms);
    is_near(ms[0], samples[0].total.median_ms, 0.3 * samples[0].total.median_ms,
            "prediction of one sample");
    evaluation_store(&model, &e);
    is_i64((int64_t)model.errors.n, 5, "four predictors and the repeats");
    is_str(model.training.measured_to, "2026-11-21T10:00:00Z",
           "when it was measured");
    ok(model.floor_gbps > 1 && model.floor_gbps < 1000,
       "highest rate of a sample: %.1f GB/s", model.floor_gbps);
}

/* The published net: its head sees only the sum and predicts ms. */
static void test_published(struct arena *arena)
{
    struct train_options options;
    struct evaluation e;
    struct model model;
    struct err err = {0};
    const struct sample *samples;
    size_t n;

    samples = synthetic_samples(&n, 200, 3, arena);
    train_options_init(&options);
    options.totals = (struct feature_set){0};
    options.epochs = 60;
    ok(!train_fit(&model, samples, n, &options, arena, &err),
       "training without totals %s", err.msg);
    evaluate_model(&e, &model, samples, n);
    ok(e.errors[PREDICTOR_NET].mape < 0.05, "error of the net %.2f %%",
       100 * e.errors[PREDICTOR_NET].mape);
}

/* Few samples are trained in batches of 32 by default. */
static void test_batches(struct arena *arena)
{
    static const unsigned sizes[] = {0, 32, 64};
    struct model models[3] = {0};
    size_t n, n_bytes;
    const struct sample *samples = synthetic_samples(&n, 50, 4, arena);

    for (unsigned i = 0; i < 3; i++) {
        struct train_options options;
        struct err err = {0};

        train_options_init(&options);
        options.epochs = 2;
        options.batch_size = sizes[i];
        ok(!train_fit(&models[i], samples, n, &options, arena, &err),
           "training in batches of %u %s", sizes[i], err.msg);
    }
    n_bytes = models[0].mlp.n_params * sizeof(float);
    ok(!memcmp(models[0].mlp.params, models[1].mlp.params, n_bytes) &&
           memcmp(models[1].mlp.params, models[2].mlp.params, n_bytes) != 0,
       "the default equals 32 and differs from 64");
}

/* A model's description of its training samples (settings, dates, held-out
 * samples) leaves out samples of a disturbed machine. */
static void test_described(struct arena *arena)
{
    struct sample_setting other = synthetic_setting;
    struct train_options options;
    struct sample *samples;
    struct err err = {0};
    struct model model;
    size_t n, n_held_out = 0;

    samples = synthetic_samples(&n, 60, 3, arena);
    other.precision = PRECISION_FP16;
    for (size_t i = 0; i < n; i++) {
        samples[i].started_at = "2026-02-02T00:00:00Z";
        if (samples[i].case_idx % 20 == 9 || samples[i].case_idx == 3) {
            samples[i].flags = SAMPLE_THROTTLED;
            samples[i].started_at = "2020-01-01T00:00:00Z";
            samples[i].setting = &other;
        } else {
            n_held_out += samples[i].kind == SAMPLE_FUSED &&
                          samples[i].case_idx % 10 == 9;
        }
    }
    train_options_init(&options);
    options.epochs = 1;
    if (!ok(!train_fit(&model, samples, n, &options, arena, &err), "trained %s",
            err.msg))
        return;
    is_i64((int64_t)model.ranges.n, 1, "one setting");
    ok(!model_covers(&model, PRECISION_FP16, other.optimizer, other.batch),
       "not that of a disturbed machine");
    is_i64((int64_t)model.training.n_held_out, (int64_t)n_held_out,
           "held-out cases");
    is_str(model.training.measured_from, "2026-02-02T00:00:00Z",
           "from then on");
}

/* One net for all settings of a GPU, from few samples with 2 % noise. */
static void test_settings(struct arena *arena)
{
    struct train_options options;
    struct evaluation e;
    struct model model, again;
    struct err err = {0};
    struct sample *samples = simulated_samples(1500, 0.02, 6, arena);
    const struct errors *net = &e.errors[PREDICTOR_NET];
    const char *data[2];
    size_t len[2], n = 0;

    train_options_init(&options);
    options.epochs = 40;
    if (!ok(!train_fit(&model, samples, 1500, &options, arena, &err) &&
                !train_fit(&again, samples, 1500, &options, arena, &err),
            "training on 28 settings%s", err.msg))
        return;
    evaluate_model(&e, &model, samples, 1500);
    ok(net->mape < 0.05 && net->kendall_tau > 0.95,
       "mean error %.2f %%, p90 %.2f %%, Kendall's tau %.4f", 100 * net->mape,
       100 * net->p90_ape, net->kendall_tau);
    ok(net->p90_ape > net->median_ape, "p90 is above the median");
    is_i64((int64_t)model.ranges.n, 4, "a range for each pair");
    ok(model_covers(&model, PRECISION_FP16, OPTIMIZER_ROWWISE_ADAGRAD, 4096),
       "batches between are covered");
    is_i64((int64_t)e.n_classes, 5, "the published setting and four classes");
    ok(e.classes[0].is_published && !e.classes[1].is_published,
       "published first");
    for (size_t c = 0; c < e.n_classes; c++) {
        ok(e.classes[c].is_trained && e.classes[c].errors.mape < 0.08,
           "class %zu: %.2f %% of %zu", c, 100 * e.classes[c].errors.mape,
           e.classes[c].errors.n);
        n += e.classes[c].errors.n;
    }
    is_i64((int64_t)n, (int64_t)net->n, "each sample is of one class");
    model.ranges.n = 0;
    range_list_add(&model.ranges, samples[0].setting);
    evaluate_model(&e, &model, samples, 1500);
    ok(!e.classes[e.n_classes - 1].is_trained, "a class outside of a range");
    again.ranges.n = 0;
    range_list_add(&again.ranges, samples[0].setting);
    model_to_bytes(&model, &data[0], &len[0], arena);
    model_to_bytes(&again, &data[1], &len[1], arena);
    ok(len[0] == len[1] && !memcmp(data[0], data[1], len[0]),
       "the same samples give the same bytes");
}

static int stop_at_three(void *ctx, const struct train_epoch *epoch)
{
    unsigned *last = ctx;

    *last = epoch->epoch;
    return epoch->epoch == 3 || !isfinite(epoch->train_loss) ||
           !isfinite(epoch->validation_loss);
}

/* Losses of a training run, and the epoch at which to stop it. */
struct losses {
    unsigned stop, best, n_negative;
    double least, last, change; /* change: relative, from the epoch before */
};

static int watch(void *ctx, const struct train_epoch *epoch)
{
    struct losses *losses = ctx;
    const double loss = epoch->validation_loss;

    losses->n_negative += epoch->train_loss < 0 || loss < 0;
    losses->change = fabs(loss / losses->last - 1);
    losses->last = loss;
    if (epoch->epoch == 1 || loss < losses->least) {
        losses->least = loss;
        losses->best = epoch->epoch;
    }
    return epoch->epoch == losses->stop;
}

/* Returns options for 40 epochs with large steps, whose losses are recorded. */
static struct train_options watched(struct losses *losses)
{
    struct train_options options;

    train_options_init(&options);
    options.epochs = 40;
    options.average = 0;
    options.learning_rate = 2e-2;
    options.on_epoch = watch;
    options.ctx = losses;
    return options;
}

/* A trained model has the weights of its best epoch. A training stopped at that
 * epoch gives the same weights. */
static void test_best_epoch(struct arena *arena)
{
    struct losses losses = {.stop = 0};
    struct train_options options = watched(&losses);
    struct model whole, part;
    struct err err = {0};
    const struct sample *samples;
    size_t n;

    samples = synthetic_samples(&n, 60, 3, arena);
    /* so that the losses do not depend on the number of epochs */
    options.decay = false;
    if (train_fit(&whole, samples, n, &options, arena, &err)) {
        ok(0, "%s", err.msg);
        return;
    }
    is_i64(losses.n_negative, 0, "no loss is negative");
    ok(losses.best < 40, "the best of 40 epochs was %u", losses.best);
    is_i64((int64_t)whole.training.best_epoch, losses.best,
           "the epoch of the least loss");
    losses.stop = losses.best;
    if (train_fit(&part, samples, n, &options, arena, &err))
        ok(0, "%s", err.msg);
    else
        ok(!memcmp(whole.mlp.params, part.mlp.params,
                   whole.mlp.n_params * sizeof(float)),
           "whose weights are taken");
}

/* The learning rate falls to 0. Therefore the last epochs hardly change the
 * loss. Half way the rate is half of its start, so the loss still changes. */
static void test_decay(struct arena *arena)
{
    struct losses losses = {.stop = 0}, half = {.stop = 20};
    struct train_options options = watched(&losses);
    struct model model;
    struct err err = {0};
    const struct sample *samples;
    size_t n;

    samples = synthetic_samples(&n, 60, 3, arena);
    ok(!train_fit(&model, samples, n, &options, arena, &err), "40 epochs");
    options.ctx = &half;
    ok(!train_fit(&model, samples, n, &options, arena, &err), "20 of 40");
    ok(losses.change < 0.02 && half.change > 0.05,
       "the last epoch changes the loss by %.1f %%, the 20th by %.1f %%",
       100 * losses.change, 100 * half.change);
}

/* The model keeps its own copy of its samples' texts, so they remain valid
 * after the samples are gone. */
static void test_owned(struct arena *arena)
{
    char device[] = "cpu:imaginary", isa[] = "avx512", driver[] = "Linux 6.1.0";
    char host[] = "box", cuda[] = "13.0", at[] = "2026-11-20T10:00:00Z";
    char *const texts[] = {device, isa, driver, host, cuda, at};
    struct sample_setting setting = synthetic_setting;
    struct train_options options;
    struct model model;
    struct err err = {0};
    struct sample *samples;
    size_t n;

    setting.device = device;
    setting.isa = isa;
    setting.driver = driver;
    setting.host = host;
    setting.cuda = cuda;
    samples = synthetic_samples(&n, 60, 3, arena);
    for (size_t i = 0; i < n; i++) {
        samples[i].setting = &setting;
        samples[i].started_at = at;
    }
    train_options_init(&options);
    options.epochs = 1;
    options.seed = 5;
    ok(!train_fit(&model, samples, n, &options, arena, &err), "trained %s",
       err.msg);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        memset(texts[i], '?', strlen(texts[i]));
    is_str(model.source, "trained on measurements of the device", "source");
    is_i64((int64_t)model.training.seed, 5, "seed");
    is_str(model.training.loss, "relative", "loss");
    is_str(model.training.version, NEUROSHARD_VERSION, "version");
    is_str(model.training.build, "gtest", "build");
    is_i64(model.basis, BASIS_MEASURED, "basis");
    is_i64(model.setting.n_threads, 2, "threads");
    is_str(model.setting.device, "cpu:imaginary", "device");
    is_str(model.setting.isa, "avx512", "instruction set");
    is_str(model.training.measured_from, "2026-11-20T10:00:00Z", "begin");
    is_str(model.training.measured_to, "2026-11-20T10:00:00Z", "end");
    is_i64((int64_t)model.n_environments, 1, "one environment");
    is_str(model.environments[0].driver, "Linux 6.1.0", "its driver");
    is_str(model.environments[0].host, "box", "its host");
    is_str(model.environments[0].cuda, "13.0", "its CUDA");
}

/* No fold holds out all validation cases, for any number of folds. Nine folds
 * would, so 8 are used instead. The numbers of folds here are 8 (instead of 9),
 * and in the full size also 10, 7 and again 8. */
static void test_folds(struct arena *arena)
{
    static const size_t sizes[] = {240, 120, 300, 276};
    const size_t n_sizes = tap_size(1, sizeof(sizes) / sizeof(*sizes));

    for (size_t i = 0; i < n_sizes; i++) {
        const size_t n_cases = sizes[i];
        struct train_options options;
        struct sample *samples;
        struct model model;
        struct err err = {0};
        size_t n, n_fused = 0;

        samples = synthetic_samples(&n, n_cases, 3, arena);
        for (size_t k = 0; k < n; k++)
            if (samples[k].kind == SAMPLE_FUSED)
                samples[n_fused++] = samples[k];
        train_options_init(&options);
        options.epochs = 1;
        ok(!train_choose(&model, samples, n_fused, &options, arena, &err),
           "a kind is chosen by %zu cases %s", n_cases, err.msg);
        if (n_cases >= 2 * CHOOSE_MIN_NET)
            is_i64((int64_t)model.choice.n, MODEL_MONOTONE, "of all");
    }
}

/* Ten cases, each measured in twelve settings. All validation samples belong to
 * one case. The fold that holds out this case would have no validation samples,
 * so no net is tried. */
static void test_few_cases(struct arena *arena)
{
    enum { CASES = 10, TIMES = 12 };
    struct sample *all = ARENA_NEW(arena, struct sample, CASES * TIMES);
    struct train_options options;
    const struct sample *samples;
    struct model model;
    struct err err = {0};
    size_t n, n_all = 0;

    samples = synthetic_samples(&n, 200, 3, arena);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < TIMES && samples[i].case_idx < CASES &&
                           samples[i].kind == SAMPLE_FUSED;
             k++)
            all[n_all++] = samples[i];
    train_options_init(&options);
    options.epochs = 1;
    is_i64((int64_t)n_all, CASES * TIMES, "ten cases in twelve settings");
    ok(!train_choose(&model, all, n_all, &options, arena, &err) &&
           model.choice.n == 1,
       "a roofline is fitted to them%s", err.msg);
}

static void test_refusals(struct arena *arena)
{
    struct train_options options;
    struct model model;
    struct err err = {0};
    const struct sample *samples;
    unsigned last = 0;
    size_t n;

    train_options_init(&options);
    samples = synthetic_samples(&n, 3, 3, arena);
    ok(train_fit(&model, samples, n, &options, arena, &err) &&
           err.code == ERR_INPUT &&
           strstr(err.msg, "too few samples to train on: "),
       "too few samples: %s", err.msg);
    ok(train_fit(&model, samples, 0, &options, arena, &err) &&
           err.code == ERR_INPUT,
       "no samples: %s", err.msg);
    samples = synthetic_samples(&n, 60, 3, arena);
    options.on_epoch = stop_at_three;
    options.ctx = &last;
    ok(!train_fit(&model, samples, n, &options, arena, &err),
       "stopped, with the best so far");
    is_i64(last, 3, "after three epochs");
    is_i64((int64_t)model.training.epochs, 3,
           "the model has the number of epochs");
    options.on_epoch = NULL;
    options.time_limit_s = 1e-9;
    ok(!train_fit(&model, samples, n, &options, arena, &err),
       "a time limit keeps the best so far");
    is_i64((int64_t)model.training.epochs, 1, "it stops after one epoch");
    options.learning_rate = 1e30;
    options.time_limit_s = 0;
    options.decay = false;
    options.epochs = 5;
    if (train_fit(&model, samples, n, &options, arena, &err))
        ok(err.code == ERR_INPUT, "diverged: %s", err.msg);
    else
        ok(isfinite((double)model.mlp.params[0]), "weights are numbers");
}

int main(void)
{
    struct arena arena = {0};

    test_split(&arena);
    test_fit(&arena);
    test_published(&arena);
    test_batches(&arena);
    test_settings(&arena);
    test_described(&arena);
    test_best_epoch(&arena);
    test_decay(&arena);
    test_owned(&arena);
    test_folds(&arena);
    test_few_cases(&arena);
    test_refusals(&arena);
    arena_release(&arena);
    return tap_done();
}
