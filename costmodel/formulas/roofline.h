/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_ROOFLINE_H
#define NEUROSHARD_COSTMODEL_FORMULAS_ROOFLINE_H

#include "core/cluster.h"
#include "core/problem.h"
#include "costmodel/formulas/features.h"
#include "costmodel/formulas/gpu_spec.h"

/*
 * Prices fused tables and whole jobs by a roofline, which roofline.c derives.
 *
 * Constants without another source are fitted to 3,899 cases that FBGEMM 1.6
 * ran on an H100 (data/measurements/fbgemm-nvidia-h100.db;
 * tests/bench/bench_figures prints the errors). Times of other GPUs are scaled
 * by their clock, number of SMs and bandwidths. Hot rows are priced as measured
 * on the H100, with Zipf exponents up to 1.5. TorchRec's pull request 4757
 * reports a backward of 4.9 forwards, but not the shape of its tables, so
 * nothing is fitted to it.
 */

/* Number of facts about a group of fused tables that add up over its tables
 * ("lanes"). Their sums determine the group's time. */
#define FUSED_LANES 14
/* Index of the first lane that is a time in ms. There are ROOFLINE_PARTS lanes
 * of this kind. */
#define FUSED_PART 2
/* Fills out[] with the lanes that one table, or one piece of a table, adds to
 * its group of fused tables. For a replica, the backward only writes the
 * gradient; its optimizer update is counted separately (embed_replica). */
void fused_fill(const struct gpu_spec *spec, const struct feature_input *input,
                bool is_replica, double out[FUSED_LANES]);
/* Return the time in ms of fused tables, given the sums of their lanes.
 * fused_added_ms leaves out the base (the time of an operation without any
 * tables); fused_ms includes the base. */
double fused_added_ms(const struct gpu_spec *spec,
                      const double lanes[FUSED_LANES]);
double fused_ms(const struct gpu_spec *spec, const double sums[FUSED_LANES]);

/* Multiplies the times among the lanes by the factors of a slowed GPU. */
void fused_slow(double lanes[FUSED_LANES], const double factors[N_SLOWED]);

/*
 * Lanes of a whole job on one GPU. An oracle that prices only one operation of
 * fused tables appends these lanes to its vectors.
 *
 * A job launches up to three operations of fused tables: one for tables and
 * column pieces, one for row blocks, one for replicas. A replica contributes to
 * JOB_REPLICAS and to the lanes after it.
 *
 * The cost of a replica follows the way TorchRec trains it. The backward writes
 * a dense gradient, which is cleared first, and is then copied into the buffer
 * of the all-reduce. Then the kernels of the optimizer pass over the whole
 * table, one after the other. For half of 304 sets of replicas that an H100
 * ran, the prediction is within 7 %. tests/gpu/fbgemm_parts.py measured these
 * sets; tests/gpu/part_prices.py compares measured and predicted times.
 */
enum job_lane {
    JOB_SHARDS,     /* number of shards that are not replicas */
    JOB_ROW_BLOCKS, /* number of shards that are row blocks */
    JOB_REPLICAS,   /* ms of all replicas, with their updates */
    /* ns that lookups take to check their ids; a whole number. */
    JOB_CHECKS,
    JOB_COMM,
    JOB_LANES = JOB_COMM + COMM_LANES
};
/* Fills out[] for one shard. `use` is the reuse of the table of the shard over
 * the global batch. */
void job_embed(const struct gpu_spec *spec, const struct problem *problem,
               const struct shard *shard, const struct table_use *use,
               double out[JOB_LANES]);
/* Returns the time in ms in which a dense optimizer updates this many fp32
 * elements. */
double roofline_update_ms(const struct gpu_spec *spec, double elements,
                          enum optimizer optimizer);

/* Returns gpu_spec_comm() with its base times filled. The base times determine
 * how compute is split into forward and backward. The base time of the forward
 * is also the price of each further chunk of lookups. On an H100, a chunk costs
 * 5 to 11 us plus the check of ids
 * (data/measurements/fbgemm-nvidia-h100-chunks.csv). */
struct comm_model job_comm(const struct gpu_spec *spec,
                           const struct cluster *cluster);

/* Returns the time in ms that a device needs in addition to its first operation
 * of fused tables: the base of each further operation, and the check of ids. A
 * second operation on an H100 took 0.085 ms (median of 114 sets that were cut
 * in two). */
double job_added_ms(const struct gpu_spec *spec, const double lanes[JOB_LANES]);

/* Lanes of a roofline that prices lookups and the job. The lanes of the fused
 * tables come first, then the lanes of the job. */
#define ROOFLINE_LANES (FUSED_LANES + JOB_LANES)
/* Fills all lanes of one shard. `use` is the reuse of the table of the shard
 * over the global batch. For a shard that is not a replica, COMM_LANE_FORWARD
 * and COMM_LANE_BACKWARD are 0; roofline_device_ms computes its forward. */
void roofline_embed(const struct gpu_spec *spec, const struct problem *problem,
                    const struct shard *shard, const struct table_use *use,
                    double out[ROOFLINE_LANES]);
/* Returns the compute time in ms of a device, given the sums of its lanes.
 * Stores the part of the forward in *forward_ms. forward_base_ms is the base
 * time of a forward, as job_comm fills it. */
double roofline_device_ms(const struct gpu_spec *spec, double forward_base_ms,
                          const double sums[ROOFLINE_LANES],
                          double *forward_ms);
/* Returns the hash of all figures and constants that prices depend on. */
uint64_t roofline_hash(const struct gpu_spec *spec, enum dedup dedup);

#endif
