/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_STEP_H
#define NEUROSHARD_EXEC_STEP_H

#include "exec/exchange.h"

/*
 * One training step of the plan, batch number STEP_BATCH: all ranks look up,
 * exchange outputs, then gradients, and update. Weights come in turns, so the
 * update is done turn by turn, and what each leaves is looked at in between.
 */
#define STEP_BATCH 0

/* Afterwards every receiver has the outputs of its samples. */
int step_forward(struct placement *placement, const struct exchange_set *set,
                 struct err *err) MUST_CHECK;
/* Receivers write loss gradients over the outputs; afterwards every holder
 * has those of its pieces, and every replica the sum of all ranks'. */
int step_gradients(const struct exchange_set *set, struct err *err) MUST_CHECK;
/* Loads the weights of a turn and updates them. */
int step_update(struct placement *placement, uint32_t turn, float learning_rate,
                struct err *err) MUST_CHECK;

#endif
