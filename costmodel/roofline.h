/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_ROOFLINE_H
#define NEUROSHARD_COSTMODEL_ROOFLINE_H

#include "core/problem.h"
#include "costmodel/features.h"
#include "costmodel/gpu_spec.h"

/* What fused tables add up to, and what they take then. */
#define FUSED_LANES 14
/* The first of the lanes that are ROOFLINE_PARTS, in ms. */
#define FUSED_PART 2
/* What a table or a piece of one adds to them. Of a replica the gradient is
 * written, and the update counted apart. */
void fused_fill(const struct gpu_spec *spec, const struct feature_input *input,
                bool is_replica, double out[FUSED_LANES]);
/* Without what any operation takes. */
double fused_added_ms(const struct gpu_spec *spec,
                      const double lanes[FUSED_LANES]);
double fused_ms(const struct gpu_spec *spec, const double sums[FUSED_LANES]);

/* Lanes as the slowed GPU has them. */
void fused_slow(double lanes[FUSED_LANES], const double factors[N_SLOWED]);

/*
 * A job launches one operation of fused tables for each of: tables and column
 * pieces, row blocks, replicas. The last lanes of each oracle that knows only
 * of one such operation; a replica has a part in those behind JOB_REPLICAS.
 *
 * What a replica adds, as TorchRec trains it: its backward writes a dense
 * gradient that is cleared before and copied to where it is reduced; then the
 * optimizer's kernels go over the whole table, one after the other. Of 304 sets
 * of replicas that an H100 ran half are within 7 %. Measured by
 * tests/gpu/fbgemm_parts.py, compared by tests/gpu/part_prices.py.
 */
enum job_lane {
    JOB_SHARDS,     /* their number */
    JOB_ROW_BLOCKS, /* those that are some */
    JOB_REPLICAS,   /* ms, with their update */
    JOB_CHECKS,     /* ns that look-ups take to check their ids; whole */
    JOB_COMM,
    JOB_LANES = JOB_COMM + COMM_LANES
};
/* Of a table that is used like this in a global batch. */
void job_embed(const struct gpu_spec *spec, const struct problem *problem,
               const struct shard *shard, const struct table_use *use,
               double out[JOB_LANES]);
/* gpu_spec_comm, and by what compute is split into forward and backward; so
 * much a chunk of look-ups takes more: on an H100 5 to 11 us beside the check
 * (data/measurements/fbgemm-nvidia-h100-chunks.csv). */
struct comm_model job_comm(const struct gpu_spec *spec,
                           const struct cluster *cluster);

/* oracle_roofline_open by these figures, which must outlive the oracle. */
struct oracle *roofline_oracle(const struct gpu_spec *spec,
                               const struct problem *problem,
                               struct arena *arena);

/* What a device's operations take beside the one of fused tables, in ms: those
 * of further groups (a second one of an H100 took 0.085 ms in the median of 114
 * sets cut in two), and the check of ids. */
double job_added_ms(const struct gpu_spec *spec, const double lanes[JOB_LANES]);

#endif
