/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_CHOOSE_H
#define NEUROSHARD_COSTMODEL_CHOOSE_H

#include "costmodel/train.h"

/*
 * Chooses the kind of model that suits the given samples. Cross-validation
 * gives the errors of each kind on samples that it did not see; all kinds are
 * judged by the same samples. Among kinds that are equally good, the simplest
 * is chosen.
 */

/* Least number of samples, without held-out ones, to try a net. With fewer
 * samples a fitted roofline is better, and the validation result would be
 * chance. */
#define CHOOSE_MIN_NET 100
/* Least number of these samples that are on the validation side. */
#define CHOOSE_MIN_NET_VALIDATION 10

/* Chooses a kind and trains a model of it as train_fit does; options->kind is
 * ignored. Fills model->choice. With more than one fold it also fills the
 * intervals. Call gemm_init first. */
int train_choose(struct model *model, const struct sample *samples, size_t n,
                 const struct train_options *options, struct arena *arena,
                 struct err *err) MUST_CHECK;

/* Returns a text such as ", judged by 10-fold cross-validation on 18 samples",
 * in the arena; "" if the kind was given. */
const char *choice_text(const struct model *model, struct arena *arena);

#endif
