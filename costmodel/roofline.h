/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_ROOFLINE_H
#define NEUROSHARD_COSTMODEL_ROOFLINE_H

#include "core/problem.h"
#include "costmodel/gpu_spec.h"

/*
 * A job launches one operation of fused tables for each of: tables and column
 * pieces, row blocks, replicas. What holds of each oracle that knows only of
 * one such operation:
 *
 * roofline_groups_ms   what the operations take that a device has beside the
 *                      one, of so many shards, so many of them row blocks, and
 *                      replicas or none. A second group of an H100 took 0.085
 *                      ms in the median of 114 sets cut in two
 * roofline_replica_ms  what each replica adds, as TorchRec trains it: its
 *                      backward writes a dense gradient that is cleared before
 *                      and copied to where it is reduced; then the optimizer's
 *                      kernels go over the whole table, one after the other. Of
 *                      304 sets of replicas that an H100 ran half are within 7
 * %
 *
 * Measured by tests/gpu/fbgemm_parts.py, compared by
 * tests/gpu/replica_prices.py.
 */
double roofline_groups_ms(const struct gpu_spec *spec, double n_shards,
                          double n_row_blocks, bool has_replicas);
double roofline_replica_ms(const struct gpu_spec *spec,
                           const struct problem *problem,
                           const struct shard *replica);

#endif
