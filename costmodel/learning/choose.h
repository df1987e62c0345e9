/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_CHOOSE_H
#define NEUROSHARD_COSTMODEL_LEARNING_CHOOSE_H

#include "costmodel/learning/train.h"

/*
 * Chooses the kind of model that suits the given samples. Cross-validation
 * gives the errors of each kind on samples that it did not see; all kinds are
 * judged by the same samples. Among kinds that are equally good, the simplest
 * is chosen. A monotone net is trained only if a caller asks for it.
 *
 * If on_epoch stops a net of the cross-validation, or if the time limit passes
 * before the net of all samples is begun, no further net is begun, and the
 * fitted roofline is taken.
 */

/* Least number of samples from which a net is tried; held-out samples are not
 * counted. With fewer samples a fitted roofline is better, and the validation
 * result of a net would be chance. */
#define CHOOSE_MIN_NET 100
/* Least number of samples on the validation side for a net to be tried. */
#define CHOOSE_MIN_NET_VALIDATION 10

/* Chooses a kind of model and trains a model of this kind by train_fit();
 * options->kind is ignored. Fills model->choice. With more than one fold it
 * also fills the intervals. Call gemm_init first. */
int train_choose(struct model *model, const struct sample *samples, size_t n,
                 const struct train_options *options, struct arena *arena,
                 struct err *err) MUST_CHECK;

#endif
