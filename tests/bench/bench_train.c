/* SPDX-License-Identifier: MIT */
/*
 * Measures training speed and accuracy on the 60,000 samples of a simulated
 * GPU: the published training reimplemented here, our own training, and simpler
 * predictors on the same held-out samples. Then trains one model for the 28
 * settings of another simulated GPU, from 4,000 samples with 2 % noise, and
 * tests it on 2,000 samples without noise.
 *
 *     bench_train [EPOCHS [SEED]]     60 epochs of the published training
 */

#include "base/clock.h"
#include "base/stats.h"
#include "costmodel/learning/dataset.h"
#include "costmodel/learning/evaluate.h"
#include "costmodel/learning/train.h"
#include "tests/golden_train.h"
#include "tests/simulated_gpu.h"

static void print_errors(const struct errors *errors)
{
    printf("%-44s %7zu %10.5f %8.2f %8.2f %8.4f\n", errors->name, errors->n,
           errors->mse, 100 * errors->mape, 100 * errors->median_ape,
           errors->kendall_tau);
}

static int compare_tables(const void *a, const void *b)
{
    const struct sample_table *x = ((const struct sample *)a)->tables;
    const struct sample_table *y = ((const struct sample *)b)->tables;

    if (x->n_rows != y->n_rows)
        return x->n_rows < y->n_rows ? -1 : 1;
    if (x->dim != y->dim)
        return x->dim < y->dim ? -1 : 1;
    if (x->pooling_factor != y->pooling_factor)
        return x->pooling_factor < y->pooling_factor ? -1 : 1;
    return memcmp(x->bins, y->bins, sizeof(x->bins));
}

/* Errors of a sum of measured single-table times (their mean if a table was
 * measured more than once). Counts held-out samples whose tables were all
 * measured. */
static struct errors sum_of_measured_singles(const struct sample *samples,
                                             size_t n, struct arena *arena)
{
    struct sample *singles = ARENA_NEW(arena, struct sample, n);
    double *want = ARENA_NEW(arena, double, n);
    double *got = ARENA_NEW(arena, double, n);
    size_t n_singles = 0, n_sums = 0;

    for (size_t i = 0; i < n; i++)
        if (samples[i].n_tables == 1 &&
            sample_split(&samples[i]) != SPLIT_HELD_OUT)
            singles[n_singles++] = samples[i];
    qsort(singles, n_singles, sizeof(*singles), compare_tables);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        if (sample_split(&samples[i]) != SPLIT_HELD_OUT ||
            samples[i].n_tables < 2)
            continue;
        for (uint32_t t = 0; t < samples[i].n_tables; t++) {
            const struct sample key = {.tables = &samples[i].tables[t]};
            const struct sample *found = bsearch(
                &key, singles, n_singles, sizeof(*singles), compare_tables);
            double total = 0, count = 0;

            while (found && found > singles && !compare_tables(found - 1, &key))
                found--;
            for (; found && found < singles + n_singles &&
                   !compare_tables(found, &key);
                 found++, count++)
                total += found->total.median_ms;
            sum += count > 0 ? total / count : NAN;
        }
        want[n_sums] = samples[i].total.median_ms;
        got[n_sums] = sum;
        if (!isnan(sum))
            n_sums++;
    }
    return errors_of("sum of measured singles (fused samples)", want, got,
                     n_sums);
}

static struct evaluation train(const char *name,
                               const struct train_options *options,
                               const struct sample *samples, size_t n,
                               struct arena *arena)
{
    struct evaluation evaluation;
    struct model model;
    struct err err = {0};
    double ms = clock_ms();

    if (train_fit(&model, samples, n, options, arena, &err)) {
        fprintf(stderr, "bench_train: %s\n", err.msg);
        exit(1);
    }
    ms = clock_ms() - ms;
    printf("%s: %u features, %llu epochs (best %llu) in %.1f s, "
           "%.0f samples/s\n",
           name, model.features.n, (unsigned long long)model.training.epochs,
           (unsigned long long)model.training.best_epoch, ms / 1000,
           (double)(model.training.n_train * model.training.epochs) / ms *
               1000);
    evaluate_model(&evaluation, &model, samples, n);
    evaluation.errors[PREDICTOR_NET].name = name;
    return evaluation;
}

static void bench_settings(uint64_t seed, struct arena *arena)
{
    struct sample *samples = simulated_samples(4000, 0.02, seed + 1, arena);
    struct sample *others = simulated_samples(2000, 0, seed + 1000, arena);
    struct train_options options;
    struct evaluation evaluation;
    struct model model;
    struct err err = {0};
    double ms = clock_ms();

    for (size_t i = 0; i < 2000; i++)
        others[i].case_idx = 9; /* all held out */
    train_options_init(&options);
    options.seed = seed;
    if (train_fit(&model, samples, 4000, &options, arena, &err)) {
        fprintf(stderr, "bench_train: %s\n", err.msg);
        exit(1);
    }
    ms = clock_ms() - ms;
    evaluate_model(&evaluation, &model, others, 2000);
    printf("\n28 settings, 4,000 samples, %llu epochs (best %llu) in %.1f s\n",
           (unsigned long long)model.training.epochs,
           (unsigned long long)model.training.best_epoch, ms / 1000);
    for (size_t c = 0; c < evaluation.n_classes; c++) {
        const struct setting_class *class = &evaluation.classes[c];

        printf(
            "%s, %s, batch %u to %u: ", precision_names[class->range.precision],
            optimizer_names[class->range.optimizer], class->range.batch_min,
            class->range.batch_max);
        printf("mean error %.2f %%, p90 %.2f %%, of %zu\n",
               100 * class->errors.mape, 100 * class->errors.p90_ape,
               class->errors.n);
    }
    print_errors(&evaluation.errors[PREDICTOR_NET]);
}

/* The published training: its features, no totals, squared loss, batches of
 * 512, a constant learning rate of 1e-3, 1,000 epochs. */
static void init_published(struct train_options *options)
{
    memset(options, 0, sizeof(*options));
    feature_set_init(&options->features, FEATURES_PUBLISHED);
    options->epochs = 1000;
    options->batch_size = 512;
    options->learning_rate = 1e-3;
    options->loss = LOSS_SQUARED;
}

int main(int argc, char **argv)
{
    struct train_options published, ours;
    struct evaluation theirs_done, ours_done;
    struct errors measured;
    struct arena arena = {0};
    const struct sample *samples;
    size_t n;

    if (!file_exists(golden_path("golden/train_compute.txt.gz", &arena))) {
        printf("bench_train: no reference data\n");
        return 0;
    }
    samples = golden_samples(&n, 60000, &arena);
    init_published(&published);
    train_options_init(&ours);
    published.epochs = ours.epochs = argc > 1 ? (unsigned)atoi(argv[1]) : 60;
    published.seed = ours.seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 0;
    theirs_done = train("net, published training and features", &published,
                        samples, n, &arena);
    ours_done =
        train("net, own training and features", &ours, samples, n, &arena);
    measured = sum_of_measured_singles(samples, n, &arena);
    printf("%-44s %7s %10s %8s %8s %8s\n", "held-out samples", "n", "MSE ms^2",
           "MAPE %", "median %", "Kendall");
    print_errors(&theirs_done.errors[PREDICTOR_NET]);
    print_errors(&ours_done.errors[PREDICTOR_NET]);
    print_errors(&ours_done.errors[PREDICTOR_PREDICTED_SINGLES]);
    print_errors(&measured);
    print_errors(&theirs_done.errors[PREDICTOR_LINEAR]);
    bench_settings(ours.seed, &arena);
    arena_release(&arena);
    return 0;
}
