/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_PREDICT_SAMPLES_H
#define NEUROSHARD_TESTS_PREDICT_SAMPLES_H

#include "costmodel/learning/evaluate.h"

#include <string.h>

static inline bool has_tables(const struct sample *sample)
{
    return sample->n_tables > 0;
}

/* Stores the model's prediction for each sample in ms[n]; each sample needs
 * n_tables >= 1. */
static inline void predict_samples(const struct model *model,
                                   const struct sample *samples, size_t n,
                                   double *ms)
{
    struct dataset dataset;
    struct arena arena = {0};

    memcpy(ms, model_predicts(&dataset, model, samples, n, has_tables, &arena),
           n * sizeof(*ms));
    arena_release(&arena);
}

#endif
