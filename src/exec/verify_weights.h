/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_VERIFY_WEIGHTS_H
#define NEUROSHARD_EXEC_VERIFY_WEIGHTS_H

#include "exec/placement.h"
#include "exec/verify.h"

/* Comparison of the updated weights with the reference of exec/verify.h. */

/*
 * Compares the weights of every touched row of the loaded pieces.
 *
 *     VERIFY_WEIGHTS   after step_update. Each sharding group has been updated
 *                      by its own samples, and a replicated table by all.
 *     VERIFY_AVERAGES  after a sync, which follows step_update: the mean of all
 *                      groups. All ranks of this process must be loaded.
 *
 * With row-wise Adagrad each piece has its own state, so if columns are split,
 * the reference applies the update rule to each piece separately.
 */
int verify_weights(struct verify *verify, enum verify_what what,
                   const struct placement *placement,
                   struct err *err) MUST_CHECK;

#endif
