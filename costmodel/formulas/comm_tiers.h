/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_COMM_TIERS_H
#define NEUROSHARD_COSTMODEL_FORMULAS_COMM_TIERS_H

#include "costmodel/formulas/comm_model.h"
#include "costmodel/formulas/gpu_spec.h"

/*
 * Time of tables in host memory (enum tier), in addition to the time that they
 * would take in the memory of the GPU:
 *
 *     fills    2 x missed bytes / link: a missed row is read from the host,
 *              and the row that it replaces is written back, because training
 *              has changed it
 *     ids      lookups of cached tables x cache_id_ns
 *     rows     lookups of tables in TIER_HOST x bytes of a row x FOLDED, once
 *              in the forward and once in the backward / link
 *     state    2 x different rows of a batch x bytes of the optimizer's values
 *              per element / link, in the backward, of cached tables, too:
 *              FBGEMM caches weights only
 *
 * The link is host_gbps of the GPU, or its share of the bandwidth of the host's
 * memory if that is less. Fills and ids are PHASE_CACHE in the pipeline that
 * fills caches a batch ahead, else a part of the forward.
 *
 * FOLDED is the share of lookups whose row crosses the link: kernels find half
 * of the rows in caches of the GPU. It is fitted to the published times of two
 * GPUs: FBGEMM's 1.05 million lookups on an H100 take 13.6 ms from the host's
 * memory and 0.96 ms from the GPU's (rows of 512 bytes assumed; 13.6 ms by the
 * formula); TorchEasyRec's on an A10 take 5.44 and 0.80 ms (as many lookups
 * assumed as its memory serves in 0.80 ms; 5.0 by the formula). Basis: assumed.
 *
 * Slots. A search does not choose slots: all memory of a device that its
 * pieces leave goes to its caches, so that they miss the fewest bytes
 * (core/cache_share.h). If the sums hold the misses of the caches of a plan
 * (ORACLE_TIER_KNOWN), these count instead.
 *
 * Pools with few differences share lanes if there are more than
 * TIERS_MAX_POOLS: first those that differ in the optimizer, then in the
 * sharding type, then in the module, then in the output.
 */

#define TIERS_FOLDED 0.5
#define TIERS_MAX_POOLS 4

/* Adds tiers to a complete oracle, after comm_oracle_add_busy and
 * comm_oracle_add_sync. Without host memory for tables in the cluster nothing
 * changes. Fails with ERR_INPUT if the GPU has no figures of its host. */
int comm_oracle_add_tiers(struct comm_oracle *oracle,
                          const struct gpu_spec *spec, struct arena *arena,
                          struct err *err) MUST_CHECK;

/* Returns the bandwidth of the link between a GPU and its host, in GB/s. */
double tiers_link_gbps(const struct gpu_spec *spec,
                       const struct cluster *cluster);

#endif
