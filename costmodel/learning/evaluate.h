/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_EVALUATE_H
#define NEUROSHARD_COSTMODEL_LEARNING_EVALUATE_H

#include "base/json.h"
#include "core/sample.h"
#include "costmodel/learning/dataset.h"
#include "costmodel/modelfile/model.h"

/*
 * Evaluation of a model: its errors on the held-out fused samples, compared
 * with simpler predictors on the same samples, and broken down by class of
 * settings. Nets are evaluated through device/gemm.h: call
 * gemm_init first.
 */

enum predictor {
    PREDICTOR_NET, /* the model that is evaluated */
    /* Sum of the measured times of the case's single tables. */
    PREDICTOR_MEASURED_SINGLES,
    /* Sum of the model's single-table predictions. */
    PREDICTOR_PREDICTED_SINGLES,
    /* Least squares on the summed features and the number of tables. */
    PREDICTOR_LINEAR,
    N_PREDICTORS
};

/* A class of held-out samples: all samples with one precision and one
 * optimizer. Samples at the published setting (batch 65,536, fp32, SGD) are a
 * class of their own. */
struct setting_class {
    bool is_published;
    /* Range of the class; its n_samples is the number of held-out samples. */
    struct model_range range;
    /* True if the training range of the model covers the whole class. */
    bool is_trained;
    struct errors errors; /* errors of the model */
};
#define MAX_SETTING_CLASSES (MODEL_MAX_RANGES + 1)

struct evaluation {
    /* Errors of each predictor. Their member `n` is 0 if the predictor does not
     * apply. */
    struct errors errors[N_PREDICTORS];
    struct disturbed_samples disturbed; /* among all samples */
    struct errors repeats; /* repeatability, from evaluate_cases() */
    struct sentinels sentinels;
    /* Setting classes. The class of the published setting comes first, if it
     * occurs. The list is empty if all samples are of one class. */
    struct setting_class classes[MAX_SETTING_CLASSES];
    size_t n_classes;
    /* Prediction intervals made from the errors on the held-out samples. */
    struct interval_list intervals;
    /* Prediction intervals that the model had before. Their members n and
     * within_frac describe the held-out samples. */
    struct interval_list covered;
    /* Comparison of a net with the sum of single tables, on the same held-out
     * cases. The cases have at least two tables, all of which were measured
     * alone. If no case was measured in this way, the net is compared with the
     * sum of its own predictions for single tables. */
    struct {
        size_t n;
        double net_mape, sum_mape;
        bool is_measured;
    } singles;
};

/* Evaluates a model. The samples are those of the model's device. They are of
 * all kinds, in any order, each with its setting. The linear model is fitted to
 * the same side of the split as the net. */
void evaluate_model(struct evaluation *evaluation, const struct model *model,
                    const struct sample *samples, size_t n);

/* Repeatability of fused cases: compares repeated measurements of a case with
 * the first measurement of the case. Returns the errors with mape and
 * median_ape, or NAN if there are no repeats. For a fused sample i, sets
 * sums[i] to the sum of the times of its tables measured alone. Sets all other
 * elements of sums[n] to NAN. */
struct errors evaluate_cases(const struct sample *samples, size_t n,
                             double *sums);

/* Returns the number of held-out samples that an evaluation would use. */
size_t evaluate_n_held_out(const struct sample *samples, size_t n);
/* Least number of held-out samples for a meaningful mean error. */
#define EVALUATE_MIN_HELD_OUT 30

/* Returns half a sentence (in the arena) if a net predicts worse than the sum
 * of single tables does, because then it is useless for fused tables. Returns
 * NULL if the net is not worse. */
const char *evaluation_lost_text(const struct evaluation *evaluation,
                                 struct arena *arena);

/* Comparison of two models on the same held-out samples. The gain on a sample
 * is the old model's relative error minus the new model's relative error; the
 * gain of the new model is the mean over samples. Each sample is its own
 * control, so its difficulty for both models cancels out. */
struct paired {
    size_t n;
    double old_mape, new_mape;
    double gain; /* old_mape - new_mape */
    /* Standard error of the gain; NAN with fewer than two cases. Measurements
     * of one case in several settings are treated as dependent. */
    double gain_se;
};
void pair_errors(struct paired *paired, const struct sample *const *samples,
                 const double *ms, const double *old_predicted,
                 const double *new_predicted, size_t n);
void evaluate_pair(struct paired *paired, const struct model *old_model,
                   const struct model *new_model, const struct sample *samples,
                   size_t n);

/* Least improvement of the mean error that a new model must reach. It is a
 * fraction or, if in_errors is true, a number of standard errors of the
 * gain. */
struct least_gain {
    double value;
    bool in_errors;
};
/* Returns true if the new model is better by at least the least gain. Stores
 * the least gain in *needed, as a fraction. The held-out samples were in no
 * training set, not even that of the old model, because the split depends only
 * on the number of the case. */
bool paired_suffices(const struct paired *paired,
                     const struct least_gain *least, double *needed);

/* Returns the errors of the predictions got[n] of the measured values
 * want[n]. */
struct errors errors_of(const char *name, const double *want, const double *got,
                        size_t n);

/* Makes the model's dataset of the samples that `keep` accepts. Returns the
 * model's prediction for each sample in ms. The dataset and the predictions
 * live in the arena. */
double *model_predicts(struct dataset *dataset, const struct model *model,
                       const struct sample *samples, size_t n,
                       bool (*keep)(const struct sample *sample),
                       struct arena *arena) NEVER_NULL;

/* Stores an evaluation in the model, to be written to the model file. The
 * intervals of the evaluation are stored only if they are based on at least as
 * many samples as the model's own intervals. */
void evaluation_store(struct model *model, const struct evaluation *evaluation);

/* Returns a JSON list with the measured time, the predicted time and the totals
 * of the tables of each held-out sample: [{measured_ms, predicted_ms, tables,
 * lookups, ...}]. */
json_t *held_out_to_json(const struct model *model,
                         const struct sample *samples, size_t n);

#endif
