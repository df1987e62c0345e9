/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_GRADIENTS_H
#define NEUROSHARD_EXEC_GRADIENTS_H

#include "exec/exchange.h"

/* Every receiver that is here writes the loss gradient of its samples (see
 * values.h) over the outputs; made on the host, chunk by chunk. */
int gradients_fill(const struct exchange_set *set, struct err *err) MUST_CHECK;

#endif
