/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_REFERENCE_CHECK_H
#define NEUROSHARD_EXEC_REFERENCE_CHECK_H

#include "exec/reference_rows.h"
#include "exec/verify.h"

/* Comparison of an executed training with its reference
 * (exec/train_reference.h). */

/* Numbers that are compared with the reference. */
enum reference_what {
    REFERENCE_LOSSES,
    REFERENCE_GRADIENTS, /* stepwise only */
    REFERENCE_UPDATES,   /* stepwise only */
    REFERENCE_AVERAGES,  /* stepwise only: weights and states after a sync */
    REFERENCE_WEIGHTS,   /* free only */
    N_REFERENCE_WHAT
};

/* Findings of the comparison in this process. The struct has no pointers, so it
 * can be sent to other processes. */
struct train_findings {
    struct tally tallies[N_REFERENCE_WHAT];
    /* Sentence about the first table or layer whose error exceeds the limit,
     * such as "step 3: the gradient of top layer 2's weights differs from the
     * unsharded reference by 0.0003, more than 1e-05"; empty if none exceeds
     * it. Steps count from 1. */
    char failure[400];
};

struct reference_check {
    struct train_findings found;
    double limits[N_REFERENCE_WHAT];
    unsigned step; /* number of the current step, from 1 */
};

/* Sets the limits. is_free: the reference runs freely. */
void reference_check_init(struct reference_check *check,
                          const struct placement *placement, bool is_free);

/* Adds a tally to the findings. If its error is the first that exceeds the
 * limit, stores a sentence. `format` and the arguments after it give the
 * subject of the sentence. */
void reference_record(struct reference_check *check, enum reference_what what,
                      const struct tally *tally, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* Compares the loss of a step. */
void reference_check_loss(struct reference_check *check, double want,
                          double got);
/* Compares numbers of all dense parameters, want[n_parameters] with
 * got[n_parameters], layer by layer. scales[n_products][2] are the least scales
 * of a row of the weights and of the bias of each product. If `scales` is NULL,
 * all are 1 / sqrt(in), the range of the initial values: the only bias of a
 * last layer may come close to 0, but its rounding errors stay. `noun` is the
 * name of the numbers in the sentence, such as "gradient". */
void reference_check_dense(struct reference_check *check,
                           enum reference_what what, const struct dense *dense,
                           const double *want, const float *got,
                           const double *scales, const char *noun);
/* Compares the gradients of the pooled vectors of n samples, [n][rows->pooled].
 * Errors are relative to the largest gradient of the sample, not of the vector:
 * all gradients of one vector may be small by cancellation, for example if the
 * interaction takes the mean of the vector. */
void reference_check_pooled(struct reference_check *check,
                            const struct reference_rows *rows, size_t n,
                            const double *want, const float *got);
/*
 * Compares all touched rows of the loaded pieces, which are downloaded.
 *
 *     REFERENCE_UPDATES  Compares with the rows of the reference after their
 *                        update. Then replaces these by the executed weights
 *                        and states, gathered from all processes. Collective.
 *     REFERENCE_AVERAGES Compares with the rows of the reference, and replaces
 *                        them like REFERENCE_UPDATES. Collective.
 *     REFERENCE_WEIGHTS  Compares with the rows of the reference.
 *
 * Fails with ERR_DEVICE, or as world_all_gather does.
 */
int reference_check_rows(struct reference_check *check,
                         enum reference_what what, struct reference_rows *rows,
                         struct err *err) MUST_CHECK;

#endif
