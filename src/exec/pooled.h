/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_POOLED_H
#define NEUROSHARD_EXEC_POOLED_H

#include "exec/dense_net.h"
#include "exec/exchange.h"

/*
 * Copies between the exchange and the dense part of a receiver. The exchange
 * has a block of outputs for each group of pieces. The dense part has one row
 * for each sample, with the tables in the order of the problem, and for each
 * table its outputs one after the other.
 */

/* Copies the outputs of all tables at a receiver to net->pooled. The outputs of
 * row blocks are partial sums and are added up in the order of their rows.
 * Fails with ERR_DEVICE. */
int pooled_gather(const struct exchange_set *set, uint32_t receiver,
                  struct dense_net *net, struct err *err) MUST_CHECK;
/* Replaces the outputs at a receiver by their gradients, which are in
 * net->pooled_gradient. Each row block gets the gradient of the sum. Fails with
 * ERR_DEVICE. */
int pooled_scatter(const struct exchange_set *set, uint32_t receiver,
                   struct dense_net *net, struct err *err) MUST_CHECK;

#endif
