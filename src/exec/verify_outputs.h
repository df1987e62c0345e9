/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_VERIFY_OUTPUTS_H
#define NEUROSHARD_EXEC_VERIFY_OUTPUTS_H

#include "exec/exchange.h"
#include "exec/verify.h"

/* Comparison of the outputs of a step with the reference of exec/verify.h. */

/* Compares the pooled outputs of step_forward at every receiver in this
 * process. verify_sequences compares the other outputs. The outputs of row-wise
 * pieces are partial sums. The comparison adds them up in fp32, as a receiver
 * does. */
int verify_outputs(struct verify *verify, const struct exchange_set *set,
                   struct err *err) MUST_CHECK;

#endif
