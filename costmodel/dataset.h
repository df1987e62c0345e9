/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_DATASET_H
#define NEUROSHARD_COSTMODEL_DATASET_H

#include "base/mem.h"
#include "core/sample.h"
#include "costmodel/features.h"
#include "costmodel/mlp.h"

/*
 * Samples as training wants them: each distinct table once as a row of
 * features, each sample a list of rows and a time. Samples are split by their
 * case, so a case's parts (fused, single tables) stay together.
 */

enum split { SPLIT_TRAIN, SPLIT_VALIDATION, SPLIT_HELD_OUT };
/* Case 8 of ten validates, 9 is held out. */
enum split sample_split(const struct sample *sample);
/* Whether a net may learn from it: fused, single or executed, at least one
 * table, a positive time, not throttled. */
bool sample_trains(const struct sample *sample);

struct dataset {
    struct feature_set features;
    size_t n_rows;
    double *x; /* [n_rows][n_features], as measured */
    size_t n_samples;
    const struct sample **samples; /* [n_samples], borrowed */
    double *ms;                    /* [n_samples] */
    uint32_t *first;               /* [n_samples + 1] into row */
    uint32_t *row;                 /* [first[n_samples]] into x */
};

/* Takes the samples that `keep` accepts, in their order. Lives in the arena
 * and borrows the samples. */
void dataset_init(struct dataset *dataset, const struct feature_set *features,
                  const struct sample_setting *setting,
                  const struct sample *samples, size_t n,
                  bool (*keep)(const struct sample *sample),
                  struct arena *arena);

/* A batch of a dataset: buffers for the largest one. */
struct batch_builder {
    const struct dataset *dataset; /* not owned */
    const float *x;                /* [n_rows][n_features], standardised */
    uint32_t *slot;  /* [dataset n_rows]: row of the batch, if stamp fits */
    uint32_t *stamp; /* [dataset n_rows] */
    uint32_t now;
    float *batch_x;  /* [max_rows][n_features] */
    uint32_t *first; /* [max_samples + 1] */
    uint32_t *row;   /* [max_rows] */
    float *ms;       /* [max_samples] */
    size_t max_rows, max_samples;
};
/* x is the dataset's, standardised. */
void batch_builder_init(struct batch_builder *builder,
                        const struct dataset *dataset, const float *x,
                        size_t max_samples, struct arena *arena);
/* The samples chosen[n] as a batch, times in builder->ms; valid until the
 * next call. */
struct mlp_batch batch_build(struct batch_builder *builder,
                             const uint32_t *chosen, size_t n);

/* (x - mean) / std of each row, as float. */
float *dataset_standardise(const struct dataset *dataset, const double *mean,
                           const double *std, struct arena *arena);

#endif
