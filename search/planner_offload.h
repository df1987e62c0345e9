/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PLANNER_OFFLOAD_H
#define NEUROSHARD_SEARCH_PLANNER_OFFLOAD_H

#include "search/contender.h"

/*
 * Planners of lists that do not fit the memory of the GPUs: rules by which
 * users keep tables in host memory today (enum tier).
 *
 *   host-large   the largest tables are in host memory: as few as possible
 *   cache-large  the same, behind a cache on the GPU
 *   cache-all      all tables are whole and cached
 *   cache-rows     all tables are cut into row blocks on all GPUs and cached;
 *                  tables that cannot be cut in this way stay whole
 *   scale-up       TorchRec's EmbeddingOffloadScaleupProposer
 *
 * Whole tables are placed by TorchRec's estimate of their time, the longest
 * first: each goes to the GPU with the least time that has room for it, as its
 * host has. The estimate is
 *
 *     bytes of the looked-up rows / bandwidth
 *
 * with TorchRec's bandwidths (torchrec/distributed/planner/constants.py):
 *
 *     GPU memory     897 GiB/s
 *     host memory    32 / 10 GiB/s
 *     cached         (f x 897 + (1 - f) x 32) / 10 GiB/s
 *
 * f is the load factor: the share of the table's rows that its cache holds. A
 * rule plans with factors of its own, because they decide what fits. At the end
 * all plans get the factors that use the memory left on each GPU best
 * (plan_choose_factors), so no rule loses by its factors alone.
 */

int rival_host_large(struct placing *placing, struct err *err) MUST_CHECK;
int rival_cache_large(struct placing *placing, struct err *err) MUST_CHECK;
int rival_cache_all(struct placing *placing, struct err *err) MUST_CHECK;
int rival_cache_rows(struct placing *placing, struct err *err) MUST_CHECK;
int rival_scale_up(struct placing *placing, struct err *err) MUST_CHECK;

#endif
