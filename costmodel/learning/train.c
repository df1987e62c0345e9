/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/train.h"

#include "base/clock.h"
#include "base/stats.h"
#include "base/version.h"
#include "costmodel/learning/dataset.h"
#include "costmodel/learning/estimate_fit.h"
#include "costmodel/learning/pseudo_labels.h"
#include "costmodel/learning/roofline_fit.h"
#include "costmodel/learning/train_net.h"
#include "costmodel/modelfile/gpu_file.h"

#include <math.h>
#include <string.h>

/*
 * Number of pseudo-labels for a net on a roofline, and the largest number of
 * measured samples at which pseudo-labels are used. Results with 200 samples of
 * a simulated GPU:
 *
 *                            without  with
 *   mean error               3.5 %    3.1 %
 *   excess cost of plans     3.3 %    2.3 %
 */
#define N_PSEUDO_LABELS 1000
#define MOST_WITH_PSEUDO_LABELS 2000
/* Largest number of samples to which a roofline is fitted. */
#define MOST_FIT 2000
/* Largest number of samples by which the nearest GPU is chosen. */
#define MOST_TRIED 200

void train_options_init(struct train_options *options)
{
    *options = (struct train_options){.kind = MODEL_NET,
                                      .learning_rate = 4e-3,
                                      .decay = true,
                                      .average = 0.998,
                                      .loss = LOSS_RELATIVE,
                                      .n_threads = 1,
                                      .n_nets = 1};
    feature_set_init(&options->features, FEATURES_STANDARD);
    feature_set_init(&options->totals, TOTALS_ALL);
}

static bool keep_validation(const struct sample *sample)
{
    return sample_trains(sample) && sample_split(sample) == SPLIT_VALIDATION;
}

/* Returns the filter that selects training samples for a kind of model. A
 * roofline needs no validation side. A net on a roofline needs none either,
 * because it begins at the roofline and is pulled to it. Both learn from all
 * samples that are not held out. */
static bool (*train_side(enum model_kind kind))(const struct sample *)
{
    return kind == MODEL_NET ? sample_is_train : sample_is_known;
}

static int check_numbers(enum model_kind kind, const struct sample *samples,
                         size_t n, struct err *err)
{
    size_t n_train = 0, n_validation = 0, n_disturbed = 0;

    for (size_t i = 0; i < n; i++) {
        n_train += train_side(kind)(&samples[i]);
        n_validation += keep_validation(&samples[i]);
        n_disturbed += (samples[i].flags & SAMPLE_THROTTLED) != 0;
    }
    if (kind == MODEL_ROOFLINE && n_train < TRAIN_MIN_FIT)
        return err_input(
            err,
            "too few samples to fit a roofline to: %zu are not held out, but "
            "at least %d are needed; %zu of a disturbed machine were left out",
            n_train, TRAIN_MIN_FIT, n_disturbed);
    if (kind == MODEL_ROOFLINE ||
        (n_train >= TRAIN_MIN_SAMPLES &&
         (n_validation >= TRAIN_MIN_VALIDATION || kind != MODEL_NET)))
        return 0;
    return err_input(err,
                     "too few samples to train on: %zu for training and %zu "
                     "for validation, but at least %d and %d are needed; %zu "
                     "of a disturbed machine were left out",
                     n_train, n_validation, TRAIN_MIN_SAMPLES,
                     TRAIN_MIN_VALIDATION, n_disturbed);
}

/* Fits the roofline of a GPU to the samples that are not held out. If there are
 * more than `most` of these samples, only every n-th sample is used. Returns
 * the loss of the fit. */
static double fit_gpu(struct estimate *estimate, const struct gpu_spec *gpu,
                      const struct sample *samples, size_t n, size_t most)
{
    struct sample *some;
    const struct feature_set none = {0};
    struct dataset dataset;
    struct arena arena = {0};
    size_t n_some = 0, nth;
    double loss;

    some = ARENA_NEW(&arena, struct sample, n);
    for (size_t i = 0; i < n; i++)
        if (sample_is_known(&samples[i]))
            some[n_some++] = samples[i];
    nth = n_some > most ? (n_some + most - 1) / most : 1;
    n_some /= nth;
    for (size_t i = 0; i < n_some; i++)
        some[i] = some[i * nth];
    estimate->gpu = *gpu;
    dataset_init(&dataset, &none, estimate, some, n_some, sample_trains,
                 &arena);
    loss = roofline_fit(estimate, dataset.sums, dataset.ms, n_some);
    arena_release(&arena);
    return loss;
}

int train_gpu(const struct gpu_spec **out, const struct sample *samples,
              size_t n, const struct train_options *options,
              struct arena *arena, struct err *err)
{
    double least = INFINITY;

    if (gpu_spec_of_device(out, samples[0].setting->device, arena, err))
        return -1;
    if (*out)
        return 0;
    for (const char *const *name = gpu_names(arena); *name; name++) {
        struct estimate tried = {.totals = options->totals};
        const struct gpu_spec *gpu;
        double loss;

        if (gpu_spec_get(&gpu, *name, arena, err))
            return -1;
        if (gpu->comm_form == COMM_TOTAL) /* the GPU is a CPU host */
            continue;
        /* a GPU is a less reliable reference if nobody measured its lookups */
        loss = fit_gpu(&tried, gpu, samples, n, MOST_TRIED) *
               (1 + gpu->lookup_error.frac);
        if (loss < least) {
            least = loss;
            *out = gpu;
        }
    }
    return *out ? 0
                : err_input(err,
                            "the data hold no GPU whose roofline could be "
                            "fitted to samples of '%s'",
                            samples[0].setting->device);
}

static void split(struct net_sides *sides, const struct model *model,
                  enum model_kind kind, const struct sample *samples, size_t n,
                  struct arena *arena)
{
    dataset_init(&sides->train, &model->features, &model->estimate, samples, n,
                 train_side(kind), arena);
    dataset_init(&sides->validation, &model->features, &model->estimate,
                 samples, kind == MODEL_NET ? n : 0, keep_validation, arena);
    sides->n_known = sides->train.n_samples;
    sides->scale = model->estimate.totals.n
                       ? 1
                       : stats_mean(sides->train.ms, sides->n_known);
}

static void describe(struct model *model, const struct net_sides *sides,
                     const struct train_options *options,
                     const struct sample *samples, size_t n,
                     struct arena *arena)
{
    const struct sample_setting *first = sides->train.samples[0]->setting;
    struct model_training *training = &model->training;
    const char *from = "", *to = "";

    for (size_t i = 0; i < n; i++) {
        const struct sample *sample = &samples[i];
        const char *pos = sample->started_at;

        if (!sample_trains(sample))
            continue;
        if (sample_split(sample) != SPLIT_HELD_OUT) {
            range_list_add(&model->ranges, sample->setting);
            model_add_environment(model, sample->setting, arena);
        } else {
            training->n_held_out += sample->kind == SAMPLE_FUSED;
        }
        if (!pos || !*pos)
            continue;
        if (!*from || strcmp(pos, from) < 0)
            from = pos;
        if (strcmp(pos, to) > 0)
            to = pos;
    }
    model->setting.device = arena_strdup(arena, first->device);
    model->setting.n_threads = first->n_threads;
    model->setting.isa = arena_strdup(arena, first->isa);
    model->basis = BASIS_MEASURED;
    model->source = model_kind(model) == MODEL_ROOFLINE
                        ? "fitted to measurements of the device"
                        : "trained on measurements of the device";
    training->version = NEUROSHARD_VERSION;
    training->build = build_id;
    training->loss = options->loss == LOSS_RELATIVE ? "relative" : "squared";
    training->seed = options->seed;
    training->n_train = sides->n_known;
    training->n_validation = sides->validation.n_samples;
    training->measured_from = arena_strdup(arena, from);
    training->measured_to = arena_strdup(arena, to);
}

/* Returns the highest rate at which any sample moved the least bytes that it
 * has to move. This rate is the physical floor of the net's predictions. */
static double highest_gbps(const struct sample *samples, size_t n)
{
    double highest = 0;

    for (size_t i = 0; i < n; i++) {
        struct feature_input input;
        double bytes = 0;

        if (!sample_trains(&samples[i]))
            continue;
        for (uint32_t j = 0; j < samples[i].n_tables; j++) {
            feature_input_of_sample(&input, samples[i].setting,
                                    &samples[i].tables[j]);
            bytes += feature_floor_bytes(&input);
        }
        highest = fmax(highest, bytes / (samples[i].total.median_ms * 1e6));
    }
    return highest;
}

int train_fit(struct model *model, const struct sample *samples, size_t n,
              const struct train_options *options, struct arena *arena,
              struct err *err)
{
    const double begin_ms = clock_ms();
    struct net_sides sides;
    const struct dataset *train = &sides.train;
    const struct gpu_spec *gpu = options->gpu;
    struct arena scratch = {0};
    int rc = -1;

    memset(model, 0, sizeof(*model));
    model->features = options->features;
    if (options->kind >= MODEL_ROOFLINE_NET)
        feature_set_init(&model->features, FEATURES_ROOFLINE);
    model->estimate.totals = options->totals;
    model->estimate.is_monotone = options->kind == MODEL_MONOTONE;
    if (check_numbers(options->kind, samples, n, err))
        goto out;
    if (options->kind != MODEL_NET) {
        if (!gpu && train_gpu(&gpu, samples, n, options, arena, err))
            goto out;
        fit_gpu(&model->estimate, gpu, samples, n, MOST_FIT);
    }
    split(&sides, model, options->kind, samples, n, &scratch);
    feature_set_scale(&model->features, train->rows,
                      train->first[train->n_samples], train->n_columns);
    if (options->kind != MODEL_NET)
        estimate_set_range(&model->estimate, train->sums, train->ms,
                           train->n_samples);
    else if (options->totals.n)
        estimate_fit(&model->estimate, train->sums, train->ms,
                     train->n_samples);
    if (options->kind >= MODEL_ROOFLINE_NET &&
        sides.n_known <= MOST_WITH_PSEUDO_LABELS)
        pseudo_labels_add(&sides.train, N_PSEUDO_LABELS, options->seed,
                          &scratch);
    if (options->kind != MODEL_ROOFLINE &&
        train_net(model, &sides, options, begin_ms, arena, err))
        goto out;
    describe(model, &sides, options, samples, n, arena);
    model->floor_gbps = highest_gbps(samples, n);
    rc = 0;
out:
    arena_release(&scratch);
    return rc;
}
