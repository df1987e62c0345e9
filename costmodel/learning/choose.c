/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/choose.h"

#include "base/clock.h"
#include "base/stats.h"
#include "costmodel/learning/dataset.h"
#include "costmodel/learning/evaluate.h"

#include <inttypes.h>
#include <math.h>

/*
 * Limits for the number of folds in cross-validation.
 *
 * SAMPLES_IN_FOLDS is folds times samples, so that choosing a kind of model
 * takes about the same amount of training for any number of samples. MOST_FOLDS
 * is the largest number of folds; more would not help.
 *
 * Intervals need many folds (Hastie et al., Elements of Statistical Learning,
 * 7.10). With ten folds a net learns from nine tenths of the samples, and has
 * larger errors than the final net. On a simulated GPU, the 90 % intervals held
 * 95 % of the samples (200 samples, median of five seeds). After the correction
 * by `correction()` they hold 92 %.
 */
#define SAMPLES_IN_FOLDS 2000
#define MOST_FOLDS 10
/* If there are more samples than this, there is one fold: the validation side
 * of the split. */
#define MOST_FOLDED 500
/* Largest ratio of mean errors at which a simpler kind of model is preferred to
 * the best kind. */
#define TOLERATED 1.1

/* A cross-validation: the samples by which kinds of models are judged, and the
 * predictions of each kind. */
struct trial {
    const struct train_options *options;
    struct sample *known; /* [n], all samples except held-out ones */
    size_t n;
    bool has_nets;
    uint64_t n_folds;
    /* [n_judged], the samples that kinds are judged by, in the order of
     * folds. */
    const struct sample **judged;
    double *ms; /* [n_judged], measured times */
    /* [n_judged], times predicted by each kind. */
    double *predicted[N_MODEL_KINDS];
    /* For each kind of model, a sum over folds. A fold adds the mean error of
     * its model on all samples, times the number of samples in the fold. */
    double all_mape[N_MODEL_KINDS];
    /* Number of judged samples so far, for the kind that is being tried. */
    size_t n_judged;
    double end_ms;     /* time on clock_ms(), or INFINITY */
    uint64_t n_to_fit; /* models that are still to be trained, at most */
};

/* Time limit of a training that has no time left. */
#define NO_TIME_S 1e-9

/* Trains one of the models. The models that are left share the time that is
 * left. */
static int fit(struct trial *trial, struct model *model,
               const struct sample *samples, size_t n, enum model_kind kind,
               struct arena *arena, struct err *err)
{
    const double left_s = (trial->end_ms - clock_ms()) / 1000;
    struct train_options options = *trial->options;

    options.kind = kind;
    if (isfinite(trial->end_ms))
        options.time_limit_s =
            fmax(left_s / (double)trial->n_to_fit, NO_TIME_S);
    trial->n_to_fit--;
    return train_fit(model, samples, n, &options, arena, err);
}

/* Returns true if a sample is in a fold. Folds consist of cases, not of
 * samples: a case that was measured in several settings is in one fold. Only
 * cases that are not held out are numbered (the last of each ten is held out).
 * If there is only one fold, it is the validation side of the split. */
static bool is_in_fold(const struct trial *trial, const struct sample *sample,
                       uint64_t fold)
{
    if (trial->n_folds == 1)
        return sample_split(sample) == SPLIT_VALIDATION;
    return (sample->case_idx - sample->case_idx / 10) % trial->n_folds == fold;
}

/* Returns true if the samples outside this fold suffice to validate a net. They
 * may not suffice if there are few cases in many settings, since one fold may
 * then hold all validation samples. */
static bool leaves_enough(const struct trial *trial, uint64_t fold)
{
    size_t n_left = 0;

    for (size_t i = 0; i < trial->n; i++)
        n_left += !is_in_fold(trial, &trial->known[i], fold) &&
                  sample_split(&trial->known[i]) == SPLIT_VALIDATION;
    return n_left >= TRAIN_MIN_VALIDATION;
}

/* Returns true if kinds of models are judged by this sample. Samples of single
 * tables do not count: they are measured to be added up, and no real device
 * holds a single table. */
static bool is_judge(const struct sample *sample)
{
    return sample->kind != SAMPLE_SINGLE && sample_is_known(sample);
}

/* Evaluates a model on all samples that kinds are judged by. Appends its
 * predictions for the samples of the fold to the predictions for earlier folds.
 * Returns its mean error on all samples, including the samples that it learned
 * from. */
static double ask(struct trial *trial, const struct model *model, uint64_t fold,
                  struct arena *arena)
{
    const enum model_kind kind = model_kind(model);
    const size_t n_before = trial->n_judged;
    double *apes = ARENA_NEW(arena, double, trial->n), mape;
    struct dataset dataset;
    const double *predicted = model_predicts(&dataset, model, trial->known,
                                             trial->n, is_judge, arena);

    for (size_t i = 0, judge = 0; i < trial->n; i++) {
        if (!is_judge(&trial->known[i]))
            continue;
        if (is_in_fold(trial, &trial->known[i], fold)) {
            trial->judged[trial->n_judged] = &trial->known[i];
            trial->predicted[kind][trial->n_judged] = predicted[judge];
            trial->ms[trial->n_judged++] = dataset.ms[judge];
        }
        judge++;
    }
    stats_apes(apes, dataset.ms, predicted, dataset.n_samples);
    mape = stats_mean(apes, dataset.n_samples);
    trial->all_mape[kind] += (double)(trial->n_judged - n_before) * mape;
    return mape;
}

/* Trains a model of this kind on the samples outside the fold, and evaluates
 * it. Does nothing if too few samples are outside. A net without a roofline
 * needs the validation side for its training, even if that side is the fold. */
static int try_fold(struct trial *trial, enum model_kind kind, uint64_t fold,
                    struct err *err)
{
    const bool sees_all = trial->n_folds == 1 && kind == MODEL_NET;
    struct sample *seen;
    size_t n_seen = 0;
    struct arena arena = {0};
    struct model model;
    int rc = 0;

    seen = ARENA_NEW(&arena, struct sample, trial->n);
    for (size_t i = 0; i < trial->n; i++)
        if (sees_all || !is_in_fold(trial, &trial->known[i], fold))
            seen[n_seen++] = trial->known[i];
    if (n_seen >= TRAIN_MIN_FIT &&
        !(rc = fit(trial, &model, seen, n_seen, kind, &arena, err)))
        ask(trial, &model, fold, &arena);
    arena_release(&arena);
    return rc;
}

static int try_kind(struct trial *trial, struct error_list *choice,
                    enum model_kind kind, struct err *err)
{
    trial->n_judged = 0;
    for (uint64_t fold = 0; fold < trial->n_folds; fold++)
        if (try_fold(trial, kind, fold, err))
            return -1;
    if (trial->n_judged)
        choice->items[choice->n++] =
            errors_of(model_kind_names[kind], trial->ms, trial->predicted[kind],
                      trial->n_judged);
    return 0;
}

/* Returns the simplest kind of model whose error differs from the least error
 * only by chance. Kinds are numbered in order of complexity, beginning with the
 * simplest. */
static enum model_kind best_kind(const struct trial *trial,
                                 const struct error_list *choice)
{
    size_t best = 0, kind = 0;

    for (size_t k = 1; k < choice->n; k++)
        if (choice->items[k].mape < choice->items[best].mape)
            best = k;
    for (; kind < best; kind++) {
        struct paired paired;

        pair_errors(&paired, trial->judged, trial->ms, trial->predicted[kind],
                    trial->predicted[best], trial->n_judged);
        if (paired.gain <= paired.gain_se &&
            paired.old_mape <= TOLERATED * paired.new_mape)
            break;
    }
    return (enum model_kind)kind;
}

/*
 * Returns the factor that corrects errors from cross-validation for the smaller
 * training sets. The folds' models saw fewer samples than the final model, so
 * their errors are larger. The correction is the difference between the two
 * models' errors on all samples ("all"), seen and unseen:
 *
 *   corrected = cross-validated + all by the model - all by the folds' models
 *
 * (Burman, "A comparative study of ordinary cross-validation, v-fold
 * cross-validation and the repeated learning-testing methods", Biometrika 76
 * (1989)). The factor is at least a half, because at least half of the samples
 * are outside a fold.
 */
static double correction(struct trial *trial, const struct errors *errors,
                         const struct model *model, struct arena *arena)
{
    const double folds_mape =
        trial->all_mape[model_kind(model)] / (double)trial->n_judged;
    /* No sample is in a fold with the number n_folds, so `ask` appends no
     * prediction. */
    const double less = folds_mape - ask(trial, model, trial->n_folds, arena);

    return errors->mape > 0 ? fmax(1 - less / errors->mape, 0.5) : 1;
}

static void collect(struct trial *trial, const struct sample *samples, size_t n,
                    struct arena *arena)
{
    size_t n_validation = 0;

    trial->known = ARENA_NEW(arena, struct sample, n);
    for (size_t i = 0; i < n; i++)
        if (sample_is_known(&samples[i])) {
            n_validation += sample_split(&samples[i]) == SPLIT_VALIDATION;
            trial->known[trial->n++] = samples[i];
        }
    trial->has_nets =
        trial->n >= CHOOSE_MIN_NET && n_validation >= CHOOSE_MIN_NET_VALIDATION;
    trial->n_folds = !trial->has_nets         ? MOST_FOLDS
                     : trial->n > MOST_FOLDED ? 1
                                              : SAMPLES_IN_FOLDS / trial->n;
    trial->n_folds = min_u64(trial->n_folds, MOST_FOLDS);
    /* In the numbering of is_in_fold, every ninth case is for validation. If
     * the number of folds were a multiple of three, all validation cases would
     * be in a third of the folds. */
    trial->n_folds -= trial->n_folds % 3 == 0;
    for (uint64_t fold = 0; trial->n_folds > 1 && fold < trial->n_folds; fold++)
        trial->has_nets = trial->has_nets && leaves_enough(trial, fold);
    trial->judged = ARENA_NEW(arena, const struct sample *, n);
    trial->ms = ARENA_NEW(arena, double, n);
    for (int kind = 0; kind < N_MODEL_KINDS; kind++)
        trial->predicted[kind] = ARENA_NEW(arena, double, n);
}

int train_choose(struct model *model, const struct sample *samples, size_t n,
                 const struct train_options *options, struct arena *arena,
                 struct err *err)
{
    struct error_list choice = {0};
    struct train_options chosen = *options;
    struct trial trial = {.options = &chosen,
                          .end_ms =
                              options->time_limit_s > 0
                                  ? clock_ms() + 1000 * options->time_limit_s
                                  : INFINITY};
    struct arena scratch = {0};
    int rc = -1;

    collect(&trial, samples, n, &scratch);
    trial.n_to_fit = (trial.has_nets ? MODEL_MONOTONE : 1) * trial.n_folds + 1;
    if (trial.n && !chosen.gpu &&
        train_gpu(&chosen.gpu, trial.known, trial.n, options, arena, err))
        goto out;
    for (int kind = 0; kind < MODEL_MONOTONE; kind++)
        if ((kind == MODEL_ROOFLINE || trial.has_nets) &&
            try_kind(&trial, &choice, (enum model_kind)kind, err))
            goto out;
    chosen.kind = best_kind(&trial, &choice);
    if (fit(&trial, model, samples, n, chosen.kind, arena, err))
        goto out;
    model->choice = choice;
    model->training.n_folds = trial.n_folds;
    /* If there is one fold, it is the validation side, whose samples have
     * already chosen the epoch. */
    if (trial.n_folds > 1)
        model->intervals = intervals_make(
            "samples by cross-validation", trial.judged, trial.ms,
            trial.predicted[chosen.kind], trial.n_judged,
            correction(&trial, &choice.items[chosen.kind], model, &scratch));
    rc = 0;
out:
    arena_release(&scratch);
    return rc;
}
