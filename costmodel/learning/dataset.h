/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_DATASET_H
#define NEUROSHARD_COSTMODEL_LEARNING_DATASET_H

#include "costmodel/formulas/estimate.h"
#include "costmodel/formulas/mlp.h"
#include "costmodel/learning/mlp_train.h"

/*
 * Samples in the format of training: each table is a row of features, each
 * sample has some rows and a time. The split into training, validation and
 * held-out sides is by case, so all samples of a case (fused tables, single
 * tables, other settings) are on one side.
 */

enum split { SPLIT_TRAIN, SPLIT_VALIDATION, SPLIT_HELD_OUT };
/* Returns the side of the split that a sample is on. In each ten cases, number
 * 8 is for validation and number 9 is held out. */
enum split sample_split(const struct sample *sample);
/* Returns true if a net may learn from the sample, whatever its side. The
 * sample is fused, single or executed, has at least one table, took a
 * nanosecond or more, and was not throttled. */
bool sample_trains(const struct sample *sample);
/* sample_is_train returns true if a net may learn from the sample and the
 * sample is on the training side. sample_is_known returns true if a net may
 * learn from it and it is on the training or validation side. */
bool sample_is_train(const struct sample *sample);
bool sample_is_known(const struct sample *sample);

/* Subtracts the time of the check of ids from a sample that was measured in a
 * job with this setting. The sample can then be compared with samples of
 * FBGEMM's lookups, which do not include the check. The price of a job adds the
 * check again. */
int sample_leave_out_checks(struct sample *sample,
                            const struct sample_setting *setting,
                            struct arena *arena, struct err *err) MUST_CHECK;

/* Samples as measured and, after dataset_scale, as inputs of a net. */
struct dataset {
    /* `features` and `estimate` are borrowed, not owned. */
    const struct feature_set *features;
    const struct estimate *estimate;
    size_t n_columns, width; /* width: length of the estimate's vectors */
    /* [first[n_samples]][n_columns]: the features of a table, as measured,
     * followed by its contributions to the totals. */
    double *rows;
    size_t n_samples;
    const struct sample **samples; /* [n_samples], borrowed samples */
    double *ms;                    /* [n_samples], measured times */
    /* [n_samples + 1]: first row of each sample. */
    uint32_t *first;
    size_t most_tables; /* largest number of tables in a sample */
    /* [n_samples][width]: sums of the estimate's vectors over a sample's
     * tables. */
    double *sums;
    /* The members from `order` on are set by dataset_scale, in its arena.
     * order[n_samples] is the order of samples in batches; the caller may
     * shuffle it. */
    uint32_t *order;
    float *scaled_rows; /* [first[n_samples]][features.n], standardised */
    /* [n_samples][estimate_head_inputs]: scaled logarithms of the totals and,
     * for a monotone net, of the estimate. */
    float *scaled_totals;
    /* [first[n_samples]]: share of each row in the estimate of its sample; 1 if
     * there is no estimate. */
    float *shares;
    double *unit; /* [n_samples]: unit of the net's answer, ms */
    /* The batch that dataset_batch filled last. It has room for max_rows rows
     * and max_samples samples. */
    struct mlp_batch batch;
    size_t max_rows, max_samples;
};

/* Collects the samples that `keep` accepts, in their order. Each sample must
 * have its `setting`. The dataset lives in the arena and borrows the features,
 * the estimate and the samples. */
void dataset_init(struct dataset *dataset, const struct feature_set *features,
                  const struct estimate *estimate, const struct sample *samples,
                  size_t n, bool (*keep)(const struct sample *sample),
                  struct arena *arena);
/* Prepares batches of at most max_samples samples, with the current scaling of
 * the features and the estimate. The unit of the net's answer is unit_ms times
 * the estimate. */
void dataset_scale(struct dataset *dataset, double unit_ms, size_t max_samples,
                   struct arena *arena);
/* Fills the batch with the samples from order[begin] on, as many as fit. */
void dataset_batch(struct dataset *dataset, size_t begin);

#endif
