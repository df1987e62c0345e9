/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_SEQUENCE_GRADIENTS_H
#define NEUROSHARD_EXEC_SEQUENCE_GRADIENTS_H

#include "exec/exchange.h"

/* Overwrites the vectors of sequences with loss gradients, for the samples of
 * every receiver in this process. Each lookup has a gradient of its own
 * (values_gradient, by the number of the lookup in the table's batch). If
 * several lookups share a vector, the receiver adds their gradients up in fp32
 * and rounds the sum to the precision of the exchange. Fails with
 * ERR_DEVICE. */
int sequence_gradients_fill(const struct exchange_set *set,
                            struct err *err) MUST_CHECK;

#endif
