/* SPDX-License-Identifier: MIT */
#include "costmodel/choose.h"

#include "base/stats.h"
#include "costmodel/dataset.h"
#include "costmodel/evaluate.h"

#include <inttypes.h>
#include <math.h>

/* So that a choice costs about as many samples' training, however few there
 * are; and no more folds than are of use. Intervals want many (Hastie et al.,
 * Elements of Statistical Learning, 7.10): of ten a net learns from nine tenths
 * of the samples and errs more than that of all, so that intervals of 90 % held
 * 95 % of a simulated GPU (200 samples, median of five seeds); with
 * `correction` they hold 92 %. */
#define SAMPLES_IN_FOLDS 2000
#define MOST_FOLDS 10
#define MOST_FOLDED 500 /* of more one fold judges, the validation side */
/* What a kind that is taken for its simplicity may be worse. */
#define TOLERATED 1.1

/* The samples by which kinds are judged, and what each says of them. */
struct trial {
    const struct train_options *options;
    struct sample *known; /* [n], none of them held out */
    size_t n;
    bool has_nets;
    uint64_t n_folds;
    const struct sample **judged; /* [n_judged] in the order of folds */
    double *ms;                   /* [n_judged] as measured */
    double *says[N_MODEL_KINDS];  /* [n_judged] */
    /* Mean errors of the folds' models on all samples, weighed by folds. */
    double all_mape[N_MODEL_KINDS];
    size_t n_judged; /* so far, by the kind that is tried */
};

/* Folds of cases, not of samples: a case measured in several settings is in
 * one. Held-out cases, the last of ten, are not counted. One fold is the
 * validation side. */
static bool is_in_fold(const struct trial *trial, const struct sample *sample,
                       uint64_t fold)
{
    if (trial->n_folds == 1)
        return sample_split(sample) == SPLIT_VALIDATION;
    return (sample->case_idx - sample->case_idx / 10) % trial->n_folds == fold;
}

/* Whether the other folds have enough to validate a net by: few cases in many
 * settings may have it all in one. */
static bool leaves_enough(const struct trial *trial, uint64_t fold)
{
    size_t n_left = 0;

    for (size_t i = 0; i < trial->n; i++)
        n_left += !is_in_fold(trial, &trial->known[i], fold) &&
                  sample_split(&trial->known[i]) == SPLIT_VALIDATION;
    return n_left >= TRAIN_MIN_VALIDATION;
}

/* A table alone is measured to add it up, a device is not one. */
static bool is_judge(const struct sample *sample)
{
    return sample->kind != SAMPLE_SINGLE && sample_is_known(sample);
}

/* Asks the model about all that judge: keeps what it says of the fold behind
 * what was said of those before. Its mean error on all, seen ones among them.
 */
static double ask(struct trial *trial, const struct model *model, uint64_t fold,
                  struct arena *arena)
{
    const enum model_kind kind = model_kind(model);
    const size_t n_before = trial->n_judged;
    double *apes = ARENA_NEW(arena, double, trial->n), mape;
    struct dataset dataset;
    const double *says =
        model_says(&dataset, model, trial->known, trial->n, is_judge, arena);

    for (size_t i = 0, judge = 0; i < trial->n; i++) {
        if (!is_judge(&trial->known[i]))
            continue;
        if (is_in_fold(trial, &trial->known[i], fold)) {
            trial->judged[trial->n_judged] = &trial->known[i];
            trial->says[kind][trial->n_judged] = says[judge];
            trial->ms[trial->n_judged++] = dataset.ms[judge];
        }
        judge++;
    }
    stats_apes(apes, dataset.ms, says, dataset.n_samples);
    mape = stats_mean(apes, dataset.n_samples);
    trial->all_mape[kind] += (double)(trial->n_judged - n_before) * mape;
    return mape;
}

/* A model of that kind learns from the other folds and is asked; not where too
 * few are left. A net alone needs the validation side, also where it is the
 * fold. */
static int try_fold(struct trial *trial, enum model_kind kind, uint64_t fold,
                    struct err *err)
{
    struct train_options options = *trial->options;
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
    options.kind = kind;
    if (n_seen >= TRAIN_MIN_FIT &&
        !(rc = train_fit(&model, seen, n_seen, &options, &arena, err)))
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
        choice->at[choice->n++] = errors_of(model_kind_names[kind], trial->ms,
                                            trial->says[kind], trial->n_judged);
    return 0;
}

/* The simplest kind whose error is that of the best but for chance; kinds are
 * numbered from the simplest on. */
static enum model_kind best_kind(const struct trial *trial,
                                 const struct error_list *choice)
{
    size_t best = 0, kind = 0;

    for (size_t k = 1; k < choice->n; k++)
        if (choice->at[k].mape < choice->at[best].mape)
            best = k;
    for (; kind < best; kind++) {
        struct paired paired;

        pair_errors(&paired, trial->judged, trial->ms, trial->says[kind],
                    trial->says[best], trial->n_judged);
        if (paired.gain <= paired.gain_se &&
            paired.old_mape <= TOLERATED * paired.new_mape)
            break;
    }
    return (enum model_kind)kind;
}

/* The folds' models err more than the one of all samples, as they saw fewer: by
 * how much say their errors on all samples, seen and not (Burman, "A
 * comparative study of ordinary cross-validation, v-fold cross-validation and
 * the repeated learning-testing methods", Biometrika 76 (1989): cross-
 * validated + all by the model - all by the folds' models). What errors are to
 * be multiplied by; no less than a half, as a fold leaves half of the samples
 * or more. */
static double correction(struct trial *trial, const struct errors *errors,
                         const struct model *model, struct arena *arena)
{
    const double folds_mape =
        trial->all_mape[model_kind(model)] / (double)trial->n_judged;
    /* No sample is in the fold behind the last. */
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
    /* Each ninth of what is_in_fold numbers validates: in one fold of three. */
    trial->n_folds -= trial->n_folds % 3 == 0;
    for (uint64_t fold = 0; trial->n_folds > 1 && fold < trial->n_folds; fold++)
        trial->has_nets = trial->has_nets && leaves_enough(trial, fold);
    trial->judged = ARENA_NEW(arena, const struct sample *, n);
    trial->ms = ARENA_NEW(arena, double, n);
    for (int kind = 0; kind < N_MODEL_KINDS; kind++)
        trial->says[kind] = ARENA_NEW(arena, double, n);
}

int train_choose(struct model *model, const struct sample *samples, size_t n,
                 const struct train_options *options, struct arena *arena,
                 struct err *err)
{
    struct error_list choice = {0};
    struct train_options chosen = *options;
    struct trial trial = {.options = &chosen};
    struct arena scratch = {0};
    int rc = -1;

    collect(&trial, samples, n, &scratch);
    if (trial.n && !chosen.gpu &&
        train_gpu(&chosen.gpu, trial.known, trial.n, options, arena, err))
        goto out;
    for (int kind = 0; kind < N_MODEL_KINDS; kind++)
        if ((kind == MODEL_ROOFLINE || trial.has_nets) &&
            try_kind(&trial, &choice, (enum model_kind)kind, err))
            goto out;
    chosen.kind = best_kind(&trial, &choice);
    if (train_fit(model, samples, n, &chosen, arena, err))
        goto out;
    model->choice = choice;
    model->training.n_folds = trial.n_folds;
    if (trial.n_folds > 1) /* what validates has chosen the epoch */
        model->intervals = intervals_make(
            "samples by cross-validation", trial.judged, trial.ms,
            trial.says[chosen.kind], trial.n_judged,
            correction(&trial, &choice.at[chosen.kind], model, &scratch));
    rc = 0;
out:
    arena_release(&scratch);
    return rc;
}

const char *choice_text(const struct model *model, struct arena *arena)
{
    const size_t n = model->choice.at[0].n;

    if (!model->choice.n)
        return "";
    if (model->training.n_folds == 1)
        return arena_printf(arena, ", judged by %zu samples for validation", n);
    return arena_printf(
        arena, ", judged by %" PRIu64 "-fold cross-validation on %zu samples",
        model->training.n_folds, n);
}
