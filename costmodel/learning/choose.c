/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/choose.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "base/stats.h"
#include "costmodel/learning/dataset.h"
#include "costmodel/learning/evaluate.h"
#include "device/gemm_buffers.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>

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
/* Number of kinds of nets that are tried. The monotone kind is not. */
#define N_NET_KINDS 2u

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
    size_t n_judged;
    double end_ms; /* time on clock_ms(), or INFINITY */
    /* Threads that train the nets of the folds, one net each; and threads that
     * share one net. */
    unsigned n_workers, n_a_net;
    /* The members below are protected by the lock. */
    pthread_mutex_t lock;
    unsigned n_begun; /* nets of folds that were begun */
    bool has_failed;  /* no more models of folds are trained */
    bool is_stopped;  /* on_epoch stopped a net */
};

/* Model of one kind, trained without the samples of a fold. */
struct folded {
    struct trial *trial;
    enum model_kind kind;
    uint64_t fold;
    /* Its predictions for all samples that kinds are judged by; NULL if too few
     * samples were outside the fold. Owned, like the arena. */
    const double *predicted;
    struct dataset judges;
    struct arena arena;
    struct err err;  /* reason why the training failed */
    bool is_skipped; /* a net for which no time was left */
};

static unsigned n_fold_nets(const struct trial *trial)
{
    return trial->has_nets ? N_NET_KINDS * (unsigned)trial->n_folds : 0;
}

/* Passes the progress of a net on; nets take turns. */
static int on_epoch(void *ctx, const struct train_epoch *epoch)
{
    struct trial *trial = ctx;
    int rc;

    pthread_mutex_lock(&trial->lock);
    rc = trial->options->on_epoch(trial->options->ctx, epoch);
    trial->is_stopped |= rc != 0;
    pthread_mutex_unlock(&trial->lock);
    return rc;
}

/* Returns true if no more nets are to be begun. */
static bool is_over(struct trial *trial)
{
    bool is_stopped;

    pthread_mutex_lock(&trial->lock);
    is_stopped = trial->is_stopped;
    pthread_mutex_unlock(&trial->lock);
    return is_stopped || clock_ms() >= trial->end_ms;
}

/* Time limit of a training that has no time left. */
#define NO_TIME_S 1e-9

/* Returns the options for one of the models. The time that is left is divided
 * by the rounds that are left: n_workers nets of folds are a round, and so is
 * the net of all samples, which is trained alone. */
static struct train_options options_of(struct trial *trial,
                                       enum model_kind kind, bool is_of_all)
{
    const unsigned n_nets = n_fold_nets(trial);
    struct train_options options = *trial->options;
    unsigned n_rounds = 1;

    options.kind = kind;
    options.n_nets = n_nets + 1;
    if (options.on_epoch) {
        options.on_epoch = on_epoch;
        options.ctx = trial;
    }
    if (!is_of_all)
        options.n_threads = trial->n_a_net;
    if (!is_of_all && kind != MODEL_ROOFLINE) {
        pthread_mutex_lock(&trial->lock);
        n_rounds += (n_nets - trial->n_begun++ + trial->n_workers - 1) /
                    trial->n_workers;
        pthread_mutex_unlock(&trial->lock);
    }
    if (isfinite(trial->end_ms))
        options.time_limit_s =
            fmax((trial->end_ms - clock_ms()) / 1000 / n_rounds, NO_TIME_S);
    return options;
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

/* Returns the mean error of predictions for all samples that kinds are judged
 * by. */
static double mape_of(const struct dataset *judges, const double *predicted,
                      struct arena *arena)
{
    double *apes = ARENA_NEW(arena, double, judges->n_samples);

    stats_apes(apes, judges->ms, predicted, judges->n_samples);
    return stats_mean(apes, judges->n_samples);
}

/* Trains a model of this kind on the samples outside the fold, and evaluates
 * it on all samples that kinds are judged by. Does nothing if too few samples
 * are outside. A net without a roofline needs the validation side for its
 * training, even if that side is the fold. */
static int try_fold(struct folded *folded)
{
    struct trial *trial = folded->trial;
    const bool sees_all = trial->n_folds == 1 && folded->kind == MODEL_NET;
    struct arena *arena = &folded->arena;
    struct model *model = ARENA_NEW(arena, struct model, 1);
    struct train_options options;
    struct sample *seen;
    size_t n_seen = 0;

    seen = ARENA_NEW(arena, struct sample, trial->n);
    for (size_t i = 0; i < trial->n; i++)
        if (sees_all || !is_in_fold(trial, &trial->known[i], folded->fold))
            seen[n_seen++] = trial->known[i];
    if (n_seen < TRAIN_MIN_FIT)
        return 0;
    options = options_of(trial, folded->kind, false);
    if (train_fit(model, seen, n_seen, &options, arena, &folded->err))
        return -1;
    folded->predicted = model_predicts(&folded->judges, model, trial->known,
                                       trial->n, is_judge, arena);
    return 0;
}

/* Tries one of the models, unless an earlier one failed. Models are begun in
 * their order, so the first one that fails is the same for any number of
 * threads. */
static void try_one(void *ctx, size_t i, unsigned thread)
{
    struct folded *folded = (struct folded *)ctx + i;
    struct trial *trial = folded->trial;
    bool has_failed;

    (void)thread;
    folded->is_skipped = folded->kind != MODEL_ROOFLINE && is_over(trial);
    if (folded->is_skipped)
        return;
    pthread_mutex_lock(&trial->lock);
    has_failed = trial->has_failed;
    pthread_mutex_unlock(&trial->lock);
    if (has_failed || !try_fold(folded))
        return;
    pthread_mutex_lock(&trial->lock);
    trial->has_failed = true;
    pthread_mutex_unlock(&trial->lock);
}

/* Appends the predictions of a model for the samples of its fold to those of
 * earlier folds. */
static void collect_fold(struct trial *trial, const struct folded *folded,
                         struct arena *arena)
{
    const struct dataset *judges = &folded->judges;
    const size_t n_before = trial->n_judged;

    if (!folded->predicted)
        return;
    for (size_t i = 0; i < judges->n_samples; i++)
        if (is_in_fold(trial, judges->samples[i], folded->fold)) {
            trial->judged[trial->n_judged] = judges->samples[i];
            trial->predicted[folded->kind][trial->n_judged] =
                folded->predicted[i];
            trial->ms[trial->n_judged++] = judges->ms[i];
        }
    trial->all_mape[folded->kind] += (double)(trial->n_judged - n_before) *
                                     mape_of(judges, folded->predicted, arena);
}

/* Collects the predictions of all models, and lists the errors of each kind
 * that was trained for all folds. Nets are begun in their order, so no model
 * follows one that was skipped. Fails if a model could not be trained. */
static int collect_folds(struct trial *trial, const struct folded *folded,
                         int n_kinds, struct error_list *choice,
                         struct arena *arena, struct err *err)
{
    for (int kind = 0; kind < n_kinds; kind++) {
        if (folded[trial->n_folds - 1].is_skipped)
            break;
        trial->n_judged = 0;
        for (uint64_t fold = 0; fold < trial->n_folds; fold++, folded++) {
            if (folded->err.code) {
                *err = folded->err;
                return -1;
            }
            collect_fold(trial, folded, arena);
        }
        if (trial->n_judged)
            choice->items[choice->n++] =
                errors_of(model_kind_names[kind], trial->ms,
                          trial->predicted[kind], trial->n_judged);
    }
    return 0;
}

/* Trains and judges a model of each kind for each fold, on all threads. */
static int try_kinds(struct trial *trial, struct error_list *choice,
                     struct arena *arena, struct err *err)
{
    const int n_kinds = 1 + (trial->has_nets ? N_NET_KINDS : 0);
    const size_t n = (size_t)n_kinds * trial->n_folds;
    struct folded *folded = ARENA_NEW(arena, struct folded, n);
    struct pool *pool =
        trial->n_workers > 1 ? pool_open(trial->n_workers) : NULL;
    int rc;

    for (size_t i = 0; i < n; i++) {
        folded[i].trial = trial;
        folded[i].kind = (enum model_kind)(i / trial->n_folds);
        folded[i].fold = i % trial->n_folds;
    }
    pool_run(pool, n, try_one, folded);
    pool_close(pool);
    rc = collect_folds(trial, folded, n_kinds, choice, arena, err);
    for (size_t i = 0; i < n; i++)
        arena_release(&folded[i].arena);
    return rc;
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
    struct dataset judges;
    const double *predicted =
        model_predicts(&judges, model, trial->known, trial->n, is_judge, arena);
    const double less = folds_mape - mape_of(&judges, predicted, arena);

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

/* Divides the threads among the nets of the folds. */
static int share_threads(struct trial *trial, struct train_options *options,
                         struct err *err)
{
    const unsigned n_nets = (unsigned)max_u64(n_fold_nets(trial), 1);

    options->n_threads =
        (unsigned)min_u64(options->n_threads, (uint64_t)n_nets * MLP_PARTS);
    if (gemm_reserve(&options->n_threads, err))
        return -1;
    trial->n_workers =
        (unsigned)max_u64(min_u64(options->n_threads, n_nets), 1);
    trial->n_a_net = options->n_threads / trial->n_workers;
    return 0;
}

int train_choose(struct model *model, const struct sample *samples, size_t n,
                 const struct train_options *options, struct arena *arena,
                 struct err *err)
{
    struct error_list choice = {0};
    struct train_options chosen = *options, of_all;
    struct trial trial = {.options = &chosen,
                          .end_ms =
                              options->time_limit_s > 0
                                  ? clock_ms() + 1000 * options->time_limit_s
                                  : INFINITY,
                          .lock = PTHREAD_MUTEX_INITIALIZER};
    struct arena scratch = {0};
    int rc = -1;

    collect(&trial, samples, n, &scratch);
    if (share_threads(&trial, &chosen, err) ||
        (trial.n && !chosen.gpu &&
         train_gpu(&chosen.gpu, trial.known, trial.n, options, arena, err)) ||
        try_kinds(&trial, &choice, &scratch, err))
        goto out;
    chosen.kind = is_over(&trial) ? MODEL_ROOFLINE : best_kind(&trial, &choice);
    of_all = options_of(&trial, chosen.kind, true);
    if (train_fit(model, samples, n, &of_all, arena, err))
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
