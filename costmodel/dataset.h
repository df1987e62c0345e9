/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_DATASET_H
#define NEUROSHARD_COSTMODEL_DATASET_H

#include "costmodel/estimate.h"
#include "costmodel/mlp.h"

/*
 * Samples as training wants them: each table a row of features, each sample
 * some rows and a time. Samples are split by their case, so a case's parts
 * (fused, single tables, other settings) stay together.
 */

enum split { SPLIT_TRAIN, SPLIT_VALIDATION, SPLIT_HELD_OUT };
/* Case 8 of ten validates, 9 is held out. */
enum split sample_split(const struct sample *sample);
/* Whether a net may learn from it, whatever its side: fused, single or
 * executed, at least one table, a nanosecond or more, not throttled. */
bool sample_trains(const struct sample *sample);
/* And whether a training learns from it, or may see it at all. */
bool sample_is_train(const struct sample *sample);
bool sample_is_known(const struct sample *sample);

/* Samples of FBGEMM's look-ups are without the check of ids that a job makes,
 * which those who price a job add: takes it off the sample of a job, whose
 * setting is given. */
int sample_leave_out_checks(struct sample *sample,
                            const struct sample_setting *setting,
                            struct arena *arena, struct err *err) MUST_CHECK;

/* As measured, and, once it is scaled, as a net sees it. */
struct dataset {
    const struct feature_set *features; /* not owned, like the next */
    const struct estimate *estimate;
    size_t n_columns, width; /* width: of the estimate's vectors */
    double *rows; /* [first[n_samples]][n_columns]: the features of a table, as
                     measured, and then what it adds to the totals */
    size_t n_samples;
    const struct sample **samples; /* [n_samples], borrowed */
    double *ms;                    /* [n_samples] */
    uint32_t *first;               /* [n_samples + 1] into rows */
    size_t most_tables;            /* of a sample */
    double *sums;                  /* [n_samples][width] */
    /* Of dataset_scale, in its arena. */
    uint32_t *order;      /* [n_samples]: the caller's to shuffle */
    float *scaled_rows;   /* [first[n_samples]][features.n] */
    float *scaled_totals; /* [n_samples][totals.n], of logarithms */
    float *shares; /* [first[n_samples]], of a row in the estimate; 1 where
                      there is no estimate */
    double *unit;  /* [n_samples] in ms: the net says multiples of it */
    struct mlp_batch batch; /* room for max_rows and max_samples: the last */
    size_t max_rows, max_samples;
};

/* Takes the samples that `keep` accepts, in their order; each has its setting.
 * Lives in the arena and borrows all of them. */
void dataset_init(struct dataset *dataset, const struct feature_set *features,
                  const struct estimate *estimate, const struct sample *samples,
                  size_t n, bool (*keep)(const struct sample *sample),
                  struct arena *arena);
/* Makes batches of at most so many samples ready, by the scaling that the
 * features and the estimate have by now. The net says multiples of unit_ms
 * times the estimate. */
void dataset_scale(struct dataset *dataset, double unit_ms, size_t max_samples,
                   struct arena *arena);
/* Makes the samples from order[begin] on that fit the batch. */
void dataset_batch(struct dataset *dataset, size_t begin);

#endif
