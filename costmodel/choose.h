/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_CHOOSE_H
#define NEUROSHARD_COSTMODEL_CHOOSE_H

#include "costmodel/train.h"

/*
 * Which kind of model suits the samples that there are: by cross-validation,
 * each kind's errors on samples that it did not see, on the same samples for
 * all. Of kinds that are as good the simplest is taken.
 */

/* With fewer that are not held out no net is tried: a fitted roofline is
 * better, and validation would be luck. */
#define CHOOSE_MIN_NET 100
#define CHOOSE_MIN_NET_VALIDATION 10 /* of them on the validation side */

/* As train_fit, of the kind that suits; options->kind does not count. Fills
 * model->choice and, by several folds, intervals, too. gemm_init comes first.
 */
int train_choose(struct model *model, const struct sample *samples, size_t n,
                 const struct train_options *options, struct arena *arena,
                 struct err *err) MUST_CHECK;

/* ", judged by 10-fold cross-validation on 18 samples", in the arena; "" where
 * the kind was given. */
const char *choice_text(const struct model *model, struct arena *arena);

#endif
