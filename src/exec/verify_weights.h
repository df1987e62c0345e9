/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_VERIFY_WEIGHTS_H
#define NEUROSHARD_EXEC_VERIFY_WEIGHTS_H

#include "exec/placement.h"
#include "exec/verify.h"

/* Comparison of the updated weights with the reference of exec/verify.h. */

/* Compares the weights of every touched row of the loaded pieces, after
 * step_update. With row-wise Adagrad each piece has its own state, so if
 * columns are split, the reference applies the update rule to each piece
 * separately. */
int verify_weights(struct verify *verify, const struct placement *placement,
                   struct err *err) MUST_CHECK;

#endif
