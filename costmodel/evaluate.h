/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_EVALUATE_H
#define NEUROSHARD_COSTMODEL_EVALUATE_H

#include "core/sample.h"
#include "costmodel/dataset.h"
#include "costmodel/model_file.h"

/*
 * How good a model is: its errors on the held-out fused samples, beside those
 * of simpler predictors on the same samples, and apart for each class of
 * settings. A net is asked through costmodel/gemm.h: gemm_init comes first.
 */

enum predictor {
    PREDICTOR_NET,               /* the model */
    PREDICTOR_MEASURED_SINGLES,  /* sum of the case's tables measured alone */
    PREDICTOR_PREDICTED_SINGLES, /* sum of what the model says for each alone */
    PREDICTOR_LINEAR, /* least squares on the summed features and the count */
    N_PREDICTORS
};

/* Held-out samples of one precision and optimizer; those at the published
 * setting (batch 65,536, fp32, SGD) are a class of their own. */
struct setting_class {
    bool is_published;
    struct model_range range; /* n_samples: held-out ones */
    bool is_trained;          /* the model covers all of it */
    struct errors errors;     /* of the net */
};
#define MAX_SETTING_CLASSES (MODEL_MAX_RANGES + 1)

struct evaluation {
    struct errors errors[N_PREDICTORS]; /* n is 0 where it does not apply */
    size_t n_throttled;                 /* samples left out for it */
    struct errors repeats;              /* see evaluate_cases */
    struct sentinels sentinels;
    /* The published setting first, where there is one; none where all samples
     * are of one class. */
    struct setting_class classes[MAX_SETTING_CLASSES];
    size_t n_classes;
    struct interval_list intervals; /* of its errors here */
    /* Those that the model had before, with n and within_frac of these. */
    struct interval_list covered;
    /* A net against the sum of single tables, on the same held-out cases:
     * those of two tables and more, whose tables were all measured alone. Where
     * there are none, against the sum of what the net says of each table. */
    struct {
        size_t n;
        double net_mape, sum_mape;
        bool is_measured;
    } singles;
};

/* samples are those of the model's device, all kinds, in any order, each with
 * its setting. The linear model learns from the same side of the split as the
 * net did. */
void evaluate_model(struct evaluation *evaluation, const struct model *model,
                    const struct sample *samples, size_t n);

/* How well a fused case that was measured again agrees with its first
 * measurement: mape and median_ape, NAN without repeats. sums[n] get for each
 * fused sample its tables measured alone, added up, else NAN. */
struct errors evaluate_cases(const struct sample *samples, size_t n,
                             double *sums);

/* Held-out samples that a model is judged by. */
size_t evaluate_n_held_out(const struct sample *samples, size_t n);
/* With fewer a mean error says little. */
#define EVALUATE_MIN_HELD_OUT 30

/* Half a sentence, in the arena, on a net that is worse than adding up single
 * tables, so that its fusing of tables is of no use; NULL where it is not. */
const char *evaluation_lost_text(const struct evaluation *evaluation,
                                 struct arena *arena);

/* Two models on the same held-out samples. The gain is the mean over them of
 * the relative error of the old model minus that of the new one. As each
 * sample is its own control, what makes it hard for both cancels out. */
struct paired {
    size_t n;
    double old_mape, new_mape;
    double gain; /* old_mape - new_mape */
    /* Its standard error; measurements of one case in several settings are no
     * independent witnesses. NAN for fewer than two cases. */
    double gain_se;
};
void pair_errors(struct paired *paired, const struct sample *const *samples,
                 const double *ms, const double *old_says,
                 const double *new_says, size_t n);
void evaluate_pair(struct paired *paired, const struct model *old_model,
                   const struct model *new_model, const struct sample *samples,
                   size_t n);

/* How much lower a successor's mean error must be: a fraction, or, in_errors,
 * so many standard errors of the gain. */
struct least_gain {
    double value;
    bool in_errors;
};
/* Whether the new model is better by so much, which *needed then says as a
 * fraction. No training sees the held-out samples, neither the one that made
 * the old model, as the split goes by the number of the case. */
bool paired_suffices(const struct paired *paired,
                     const struct least_gain *least, double *needed);

/* The errors of got[n] against want[n]. */
struct errors errors_of(const char *name, const double *want, const double *got,
                        size_t n);

/* Makes the model's dataset of the samples that `keep` accepts. What the model
 * says for each, in ms, in the arena like the dataset. */
double *model_says(struct dataset *dataset, const struct model *model,
                   const struct sample *samples, size_t n,
                   bool (*keep)(const struct sample *sample),
                   struct arena *arena) NEVER_NULL;

/* Puts the evaluation into the model, for its file: intervals where they are of
 * more samples than those it has. */
void evaluation_store(struct model *model, const struct evaluation *evaluation);

/* {held_out: errors of each predictor, settings: of each class, repeats, ...};
 * the caller decrefs it. */
json_t *evaluation_to_json(const struct evaluation *evaluation);
/* What was measured of each held-out sample and what the model says, with what
 * its tables come to: [{measured_ms, predicted_ms, tables, lookups, ...}]. */
json_t *held_out_to_json(const struct model *model,
                         const struct sample *samples, size_t n);

#endif
