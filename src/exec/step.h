/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_STEP_H
#define NEUROSHARD_EXEC_STEP_H

#include "exec/exchange.h"

/*
 * One training step of the plan, batch number STEP_BATCH: all ranks look up,
 * exchange outputs, then gradients, and update.
 */
#define STEP_BATCH 0

/* Afterwards every receiver has the outputs of its samples. */
int step_forward(const struct exchange_set *set, struct err *err) MUST_CHECK;
/* Receivers write loss gradients over the outputs; afterwards every holder
 * has those of its pieces. */
int step_gradients(const struct exchange_set *set, struct err *err) MUST_CHECK;
/* Updates all weights, replicas after an all-reduce. */
int step_update(const struct exchange_set *set, float learning_rate,
                struct err *err) MUST_CHECK;

#endif
