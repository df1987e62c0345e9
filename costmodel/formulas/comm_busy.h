/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_COMM_BUSY_H
#define NEUROSHARD_COSTMODEL_FORMULAS_COMM_BUSY_H

#include "costmodel/formulas/comm_model.h"

/*
 * Times that a cost model does not predict, in the busy lanes of an oracle:
 *
 * - the time that devices spend on tables that the plan does not place (busy_ms
 *   of the cluster), in the sums of empty devices;
 * - measured lookups (forward_factor and backward_factor of a table). A shard
 *   takes (factor - 1) times its own forward or backward more than predicted.
 *   Its own time is the time that it takes alone, without the base of an
 *   operation.
 * - the slowdown of a device (slowdown of the cluster), in the sums of empty
 *   devices: a factor on its compute.
 */

/* Adds these times to a complete oracle. It appends N_BUSY_LANES lanes to the
 * vectors, so ops->embed and ops->compute must take vectors that are base.width
 * apart. Without such times nothing changes. */
void comm_oracle_add_busy(struct comm_oracle *oracle, struct arena *arena);

#endif
