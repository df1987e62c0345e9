/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_EVALUATE_H
#define NEUROSHARD_COSTMODEL_EVALUATE_H

#include "base/mem.h"
#include "core/sample.h"
#include "costmodel/model_file.h"

/*
 * How good a model is: its errors on the held-out fused samples, beside those
 * of simpler predictors on the same samples, and apart for each class of
 * settings.
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
    /* A fused case measured again, against its first measurement. */
    size_t n_repeats;
    double repeat_median_ape, repeat_mape; /* NAN without repeats */
    /* The sentinel case over the whole run: (p90 - p10) / median. */
    size_t n_sentinels;
    double sentinel_spread_frac; /* NAN for fewer than two */
    /* The published setting first, where there is one; none where all samples
     * are of one class. */
    struct setting_class classes[MAX_SETTING_CLASSES];
    size_t n_classes;
};

/* samples are those of the model's device, all kinds, in any order, each with
 * its setting. The linear model learns from the same side of the split as the
 * net did. */
void evaluate_model(struct evaluation *evaluation, const struct model *model,
                    const struct sample *samples, size_t n);

/* The errors of got[n] against want[n]. */
struct errors errors_of(const char *name, const double *want, const double *got,
                        size_t n);

/* What the model says for each sample, in ms; n_tables >= 1 each. */
void predict_samples(const struct model *model, const struct sample *samples,
                     size_t n, double *ms);

/* Puts the evaluation into the model, for its file. */
void evaluation_store(struct model *model, const struct evaluation *evaluation);

#endif
