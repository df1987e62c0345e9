/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_EVALUATE_H
#define NEUROSHARD_COSTMODEL_EVALUATE_H

#include "core/sample.h"
#include "costmodel/dataset.h"
#include "costmodel/model_file.h"

/*
 * Evaluation of a model: its errors on the held-out fused samples, compared
 * with simpler predictors on the same samples, and broken down by class of
 * settings. Nets are evaluated through costmodel/gemm.h: call gemm_init first.
 */

enum predictor {
    PREDICTOR_NET, /* the model */
    /* Sum of the measured times of the case's single tables. */
    PREDICTOR_MEASURED_SINGLES,
    /* Sum of the model's single-table predictions. */
    PREDICTOR_PREDICTED_SINGLES,
    /* Least squares on the summed features and the number of tables. */
    PREDICTOR_LINEAR,
    N_PREDICTORS
};

/* Held-out samples of one precision and optimizer. Samples at the published
 * setting (batch 65,536, fp32, SGD) are a class of their own. */
struct setting_class {
    bool is_published;
    struct model_range range; /* n_samples is the number of held-out samples */
    bool is_trained;          /* true if the model covers the whole class */
    struct errors errors;     /* errors of the model */
};
#define MAX_SETTING_CLASSES (MODEL_MAX_RANGES + 1)

struct evaluation {
    /* The member n is 0 if a predictor does not apply. */
    struct errors errors[N_PREDICTORS];
    /* Samples left out because they were throttled. */
    size_t n_throttled;
    struct errors repeats; /* see evaluate_cases */
    struct sentinels sentinels;
    /* The published setting comes first, if it occurs. Empty if all samples are
     * of one class. */
    struct setting_class classes[MAX_SETTING_CLASSES];
    size_t n_classes;
    /* Intervals of the errors on these samples. */
    struct interval_list intervals;
    /* Intervals that the model had before. Their n and within_frac are those of
     * these samples. */
    struct interval_list covered;
    /* A net compared with the sum of single tables, on the same held-out cases:
     * cases of at least two tables, all of which were measured alone. If no
     * case has these measurements, the net is compared with the sum of its
     * single-table predictions. */
    struct {
        size_t n;
        double net_mape, sum_mape;
        bool is_measured;
    } singles;
};

/* Evaluates a model. The samples are those of the model's device: all kinds, in
 * any order, each with its setting. The linear model is fitted to the same side
 * of the split as the net. */
void evaluate_model(struct evaluation *evaluation, const struct model *model,
                    const struct sample *samples, size_t n);

/* Repeatability: compares fused cases that were measured again with their first
 * measurement. Returns mape and median_ape; NAN without repeats. Sets sums[i]
 * of each fused sample to the sum of its tables measured alone, and all other
 * sums[n] to NAN. */
struct errors evaluate_cases(const struct sample *samples, size_t n,
                             double *sums);

/* Returns the number of held-out samples for an evaluation. */
size_t evaluate_n_held_out(const struct sample *samples, size_t n);
/* Least number of held-out samples for a meaningful mean error. */
#define EVALUATE_MIN_HELD_OUT 30

/* Returns half a sentence (in the arena) if a net is worse than adding up
 * single tables, so that it is useless for fused tables. Otherwise NULL. */
const char *evaluation_lost_text(const struct evaluation *evaluation,
                                 struct arena *arena);

/* Comparison of two models on the same held-out samples. The gain is the mean
 * over samples of the old model's relative error minus the new model's. Each
 * sample is its own control, so its difficulty for both models cancels out. */
struct paired {
    size_t n;
    double old_mape, new_mape;
    double gain; /* old_mape - new_mape */
    /* Standard error of the gain. It treats measurements of one case in several
     * settings as dependent. NAN with fewer than two cases. */
    double gain_se;
};
void pair_errors(struct paired *paired, const struct sample *const *samples,
                 const double *ms, const double *old_predicted,
                 const double *new_predicted, size_t n);
void evaluate_pair(struct paired *paired, const struct model *old_model,
                   const struct model *new_model, const struct sample *samples,
                   size_t n);

/* Least improvement of the mean error for a successor: a fraction or, with
 * in_errors, a number of standard errors of the gain. */
struct least_gain {
    double value;
    bool in_errors;
};
/* Returns true if the new model is better by the least gain, which is stored in
 * *needed as a fraction. The held-out samples were in no training set, not even
 * that of the old model, because the split depends only on the number of the
 * case. */
bool paired_suffices(const struct paired *paired,
                     const struct least_gain *least, double *needed);

/* Returns the errors of got[n] against want[n]. */
struct errors errors_of(const char *name, const double *want, const double *got,
                        size_t n);

/* Makes the model's dataset of the samples that `keep` accepts. Returns the
 * model's prediction for each in ms. Both live in the arena. */
double *model_predicts(struct dataset *dataset, const struct model *model,
                       const struct sample *samples, size_t n,
                       bool (*keep)(const struct sample *sample),
                       struct arena *arena) NEVER_NULL;

/* Stores the evaluation in the model, for its file. Its intervals are stored
 * only if they are based on at least as many samples as the model's own. */
void evaluation_store(struct model *model, const struct evaluation *evaluation);

/* Returns {held_out: errors of each predictor, settings: errors of each class,
 * repeats, ...}. The caller decrefs it. */
json_t *evaluation_to_json(const struct evaluation *evaluation);
/* Returns, for each held-out sample, the measured and predicted time and the
 * totals of its tables: [{measured_ms, predicted_ms, tables, lookups, ...}]. */
json_t *held_out_to_json(const struct model *model,
                         const struct sample *samples, size_t n);

#endif
