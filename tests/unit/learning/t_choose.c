/* SPDX-License-Identifier: MIT */
/* Error intervals from cross-validation, for a simulated GPU (tests/few_gpus.h)
 * with too few samples for a net. The test computes them again from rooflines
 * fitted to each fold. It applies Burman's correction, because each fold's
 * model is trained on fewer samples than the final model. */
#include "base/stats.h"
#include "costmodel/learning/choose.h"
#include "costmodel/modelfile/model_file.h"
#include "device/gemm.h"
#include "tests/few_gpus.h"
#include "tests/predict_samples.h"
#include "tests/tap.h"

#include <sched.h>
#include <stdatomic.h>

#define N_SAMPLES 60
#define N_FOLDS 10
/* Samples of GPU B that several tests share, because drawing them takes most of
 * the time. */
#define N_QUIET 556
#define N_NOISY 112

struct drawn {
    const struct sample *quiet; /* N_QUIET, noise 0.03 */
    const struct sample *noisy; /* N_NOISY, noise 0.4 */
};

static double mape(const struct model *model, const struct sample *known,
                   size_t n)
{
    double predicted[N_SAMPLES], sum = 0;

    predict_samples(model, known, n, predicted);
    for (size_t i = 0; i < n; i++)
        sum += fabs(predicted[i] / known[i].total.median_ms - 1);
    return sum / (double)n;
}

/* Returns the relative error of the interval for all classes, recomputed from
 * the known samples. None of these samples may be held out. Burman's correction
 * factor is stored in *scale. */
static double reckon(const struct sample *known, size_t n,
                     const struct train_options *options, double *scale,
                     struct arena *arena)
{
    double errors[N_SAMPLES], predicted[N_SAMPLES], folds_mape = 0,
                                                    folded_mape = 0;
    size_t n_errors = 0, k;
    struct model model;
    struct err err = {0};

    for (uint64_t fold = 0; fold < N_FOLDS; fold++) {
        struct sample seen[N_SAMPLES], own[N_SAMPLES];
        size_t n_seen = 0, n_own = 0;

        for (size_t i = 0; i < n; i++)
            if ((known[i].case_idx - known[i].case_idx / 10) % N_FOLDS == fold)
                own[n_own++] = known[i];
            else
                seen[n_seen++] = known[i];
        if (!ok(!train_fit(&model, seen, n_seen, options, arena, &err),
                "fold %u: %zu seen%s", (unsigned)fold, n_seen, err.msg))
            return NAN;
        predict_samples(&model, own, n_own, predicted);
        for (size_t i = 0; i < n_own; i++) {
            const double ms = own[i].total.median_ms;

            folded_mape += fabs(predicted[i] / ms - 1);
            errors[n_errors++] = fmax(predicted[i] / ms, ms / predicted[i]) - 1;
        }
        folds_mape += (double)n_own * mape(&model, known, n);
    }
    if (!ok(!train_fit(&model, known, n, options, arena, &err), "of all"))
        return NAN;
    folded_mape /= (double)n;
    folds_mape /= (double)n;
    *scale = (folded_mape + mape(&model, known, n) - folds_mape) / folded_mape;
    k = (size_t)ceil(0.9 * (double)(n_errors + 1));
    return *scale * stats_quantile(errors, n_errors,
                                   (double)(k - 1) / (double)(n_errors - 1));
}

static void test_corrected(char gpu)
{
    struct arena arena = {0};
    const struct sample *samples = few_samples(gpu, N_SAMPLES, 0.03, 1, &arena);
    struct sample known[N_SAMPLES];
    struct train_options options;
    struct model model;
    struct err err = {0};
    double error, scale = NAN;
    size_t n = 0;

    for (size_t i = 0; i < N_SAMPLES; i++)
        if (sample_split(&samples[i]) != SPLIT_HELD_OUT)
            known[n++] = samples[i];
    train_options_init(&options);
    options.kind = MODEL_ROOFLINE;
    if (!ok(!train_choose(&model, samples, N_SAMPLES, &options, &arena, &err),
            "%c: chosen%s", gpu, err.msg))
        goto out;
    is_i64((int64_t)model.training.n_folds, N_FOLDS, "ten folds are used");
    is_i64((int64_t)model.intervals.items[0].n, (int64_t)n,
           "the interval counts all judging samples");
    if (!options.gpu &&
        train_gpu(&options.gpu, known, n, &options, &arena, &err))
        goto out;
    error = reckon(known, n, &options, &scale, &arena);
    ok(scale > 0.9 && scale < 0.9999,
       "folds err more than the model of all: times %.4f", scale);
    is_near(model.intervals.items[0].error_frac, error, 1e-9, "its interval");
out:
    arena_release(&arena);
}

/* train_choose may prefer a simpler kind of model if its error is at most a
 * tenth above the best one. */
static void check_kind(const struct model *model)
{
    const double own = model->choice.items[model_kind(model)].mape;
    double best = own;

    for (size_t k = 0; k < model->choice.n; k++)
        best = fmin(best, model->choice.items[k].mape);
    ok(own <= 1.1 * best, "%s errs by %.3f times the error of the best",
       model_kind_names[model_kind(model)], own / best);
}

/* Checks how the number of samples decides the number of folds and whether nets
 * are tried. A tenth of the samples is held out. The nets train for one epoch,
 * because only the counts matter. test_threads has a further case, with nets in
 * ten folds. */
static void test_counts(const struct sample *samples)
{
    static const struct {
        size_t n_samples, n_known;
        unsigned n_folds, n_kinds;
    } cases[] = {
        /* fewer than 100 known: no nets */
        {110, 99, 10, 1},
        /* 5 folds train on about 2,000 samples in all, but not 6 */
        {370, 333, 5, 3},
        /* more than 500 known: one fold */
        {N_QUIET, 501, 1, 3},
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct arena arena = {0};
        struct train_options options;
        struct model model;
        struct err err = {0};
        size_t n_known = 0;

        for (size_t i = 0; i < cases[c].n_samples; i++)
            n_known += sample_split(&samples[i]) != SPLIT_HELD_OUT;
        is_i64((int64_t)n_known, (int64_t)cases[c].n_known, "samples known");
        train_options_init(&options);
        options.epochs = 1;
        if (ok(!train_choose(&model, samples, cases[c].n_samples, &options,
                             &arena, &err),
               "chosen%s", err.msg)) {
            is_i64((int64_t)model.training.n_folds, cases[c].n_folds, "folds");
            is_i64((int64_t)model.choice.n, cases[c].n_kinds, "kinds tried");
            check_kind(&model);
        }
        arena_release(&arena);
    }
}

static int count_epoch(void *ctx, const struct train_epoch *epoch)
{
    (void)epoch;
    ++*(unsigned *)ctx;
    return 0;
}

/* All trainings share a time limit. After its end no net is begun, and the
 * fitted roofline is taken. */
static void test_limit(const struct sample *samples)
{
    struct arena arena = {0};
    struct train_options options;
    struct model model;
    struct err err = {0};
    unsigned n_epochs = 0;

    train_options_init(&options);
    options.time_limit_s = 1e-9;
    options.on_epoch = count_epoch;
    options.ctx = &n_epochs;
    ok(!train_choose(&model, samples, N_NOISY, &options, &arena, &err),
       "chosen%s", err.msg);
    ok(!n_epochs && model_kind(&model) == MODEL_ROOFLINE && model.choice.n == 1,
       "no epoch, the roofline alone: %u, %u", n_epochs,
       (unsigned)model.choice.n);
    arena_release(&arena);
}

/* An epoch that stops its net ends the cross-validation: nets of other threads
 * end after their epoch, and no net is begun. One and four threads are tried.
 */
static int stop_third(void *ctx, const struct train_epoch *epoch)
{
    (void)epoch;
    return ++*(unsigned *)ctx >= 3;
}

static void test_stopped(const struct sample *samples)
{
    struct arena arena = {0};

    for (unsigned n_threads = 1; n_threads <= 4; n_threads += 3) {
        struct train_options options;
        struct model model;
        struct err err = {0};
        unsigned n_epochs = 0;
        int rc;

        train_options_init(&options);
        options.n_threads = n_threads;
        options.on_epoch = stop_third;
        options.ctx = &n_epochs;
        rc = train_choose(&model, samples, N_NOISY, &options, &arena, &err);
        ok(!rc && n_epochs >= 3 && n_epochs <= 3 + n_threads &&
               model_kind(&model) == MODEL_ROOFLINE && model.choice.n == 1,
           "%u threads stop after %u epochs%s", n_threads, n_epochs, err.msg);
    }
    arena_release(&arena);
}

/* Nets on several threads give the bits of one thread. on_epoch is called by
 * one thread at a time, with the number of all nets. */
struct turns {
    atomic_bool is_inside;
    unsigned n_epochs, n_nets, n_overlaps;
};

static int take_turn(void *ctx, const struct train_epoch *epoch)
{
    struct turns *turns = ctx;

    turns->n_overlaps += atomic_exchange(&turns->is_inside, true);
    turns->n_nets = epoch->n_nets;
    turns->n_epochs++;
    sched_yield(); /* gives another thread time to come in */
    atomic_store(&turns->is_inside, false);
    return 0;
}

/* Trains on n samples, which repeat those of the N_NOISY as other cases. Two
 * kinds of nets are trained in each fold, and the chosen one on all samples.
 * With high noise, the kinds of models have nearly equal errors. */
static void test_threads(const struct sample *noisy, size_t n, unsigned n_folds,
                         unsigned most)
{
    const unsigned n_nets = 2 * n_folds + 1;
    /* With sanitizers, only the largest number of threads is tried. */
    const unsigned least = tap_many(10) < 10 ? most : 1;
    struct arena arena = {0};
    struct sample *samples = ARENA_NEW(&arena, struct sample, n);
    const char *first = NULL;
    size_t first_len = 0;

    for (size_t i = 0; i < n; i++) {
        samples[i] = noisy[i % N_NOISY];
        samples[i].case_idx = i;
    }
    for (unsigned n_threads = least; n_threads <= most; n_threads += most - 1) {
        struct turns turns = {.is_inside = false};
        struct train_options options;
        struct model model;
        struct err err = {0};
        const char *data;
        size_t len;

        train_options_init(&options);
        options.epochs = 4;
        options.n_threads = n_threads;
        options.on_epoch = take_turn;
        options.ctx = &turns;
        if (!ok(!train_choose(&model, samples, n, &options, &arena, &err),
                "%u threads%s", n_threads, err.msg))
            continue;
        is_i64((int64_t)model.training.n_folds, n_folds, "folds");
        is_i64((int64_t)model.choice.n, 3, "kinds tried");
        check_kind(&model);
        ok(turns.n_nets == n_nets && turns.n_epochs >= 4 * (n_nets - 1) &&
               turns.n_epochs <= 4 * n_nets && !turns.n_overlaps,
           "%u epochs of up to %u nets, one at a time", turns.n_epochs,
           turns.n_nets);
        model_to_bytes(&model, &data, &len, &arena);
        if (!first) {
            first = data;
            first_len = len;
        }
        ok(len == first_len && !memcmp(data, first, len), "the same model");
    }
    arena_release(&arena);
}

/* If a model cannot be trained, the first error is reported, for one thread and
 * for four. */
static void test_failure(const struct sample *samples)
{
    struct arena arena = {0};

    for (unsigned n_threads = 1; n_threads <= 4; n_threads += 3) {
        struct train_options options;
        struct model model;
        struct err err = {0};

        train_options_init(&options);
        options.epochs = 3;
        options.learning_rate = NAN;
        options.n_threads = n_threads;
        ok(train_choose(&model, samples, N_NOISY, &options, &arena, &err) !=
                   0 &&
               strstr(err.msg, "training diverged"),
           "%u threads: %s", n_threads, err.msg);
    }
    arena_release(&arena);
}

int main(void)
{
    struct arena arena = {0};
    struct drawn drawn;
    struct err err = {0};

    if (gemm_init(&err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    drawn.quiet = few_samples('B', N_QUIET, 0.03, 1, &arena);
    drawn.noisy = few_samples('B', N_NOISY, 0.4, 1, &arena);
    test_corrected('A');
    test_corrected('B');
    test_counts(drawn.quiet);
    test_limit(drawn.noisy);
    test_stopped(drawn.noisy);
    test_threads(drawn.noisy, N_NOISY, 10, 2); /* 10 folds at most */
    test_threads(drawn.noisy, 2300, 1, 4);     /* without pseudo-labels */
    test_failure(drawn.noisy);
    arena_release(&arena);
    return tap_done();
}
