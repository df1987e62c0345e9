/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_REPLICA_H
#define NEUROSHARD_EXEC_REPLICA_H

#include "device/lookup.h"
#include "exec/placement.h"

/*
 * Data-parallel tables: a rank scatters the gradients of its own samples into
 * a dense gradient, the ranks add these up (exchange_allreduce), and each
 * applies the same update to its copy.
 */

/* A look-up whose backward at rate -1 adds the gradients of a batch to the
 * dense ones: plain SGD on a zeroed table *is* the dense gradient. */
int replica_open_scatter(struct lookup **scatter,
                         const struct placement *placement,
                         const struct group *group, uint32_t n_bags,
                         uint64_t max_lookups, struct err *err) MUST_CHECK;
#define REPLICA_SCATTER_RATE (-1.0F)

/* Optimizer step on every row of a rank's replicas that has a gradient;
 * zeroes the gradients. */
int replica_apply(const struct placement *placement, uint32_t rank,
                  float learning_rate, struct err *err) MUST_CHECK;

#endif
