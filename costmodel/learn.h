/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARN_H
#define NEUROSHARD_COSTMODEL_LEARN_H

#include "costmodel/evaluate.h"
#include "costmodel/train.h"

/*
 * Measurements in, a judged model out: training, evaluation on what was held
 * out, and communication, in one call. And a model against its successor.
 */

/* What is known of one device; each sample has its setting. */
struct measurements {
    struct sample *samples;
    size_t n;
    struct comm_sample *comm_samples;
    size_t n_comm;
};

/* Trains, evaluates and fits the communication; errors and communication are
 * in the model, too. Stops with the best so far where options->on_epoch says
 * so. ERR_INPUT as train_fit, and, unless is_forced, where there are too few
 * held-out samples to judge it by. gemm_init comes first. */
int learn(struct model *model, struct evaluation *evaluation,
          const struct measurements *measurements,
          const struct train_options *options, bool is_forced,
          struct arena *arena, struct err *err) MUST_CHECK;

/* Half a sentence, in the arena, on a net that loses to the sum of single
 * tables; NULL where it does not. */
const char *learn_lost_text(const struct evaluation *evaluation,
                            struct arena *arena);

/* How much lower a successor's mean error must be: a fraction, or, in_errors,
 * so many standard errors of the difference. */
struct least_gain {
    double value;
    bool in_errors;
};
/* Judges both by the same held-out samples; returns whether the new model is
 * better by the least gain, which *needed then says as a fraction. The test is
 * paired: on each sample the old model's error is set against the new one's. No
 * training sees those samples, neither the one that made the old model, as the
 * split goes by the number of the case. */
bool learn_is_better(struct paired *paired, double *needed,
                     const struct model *old_model,
                     const struct model *new_model,
                     const struct measurements *measurements,
                     const struct least_gain *least);

#endif
