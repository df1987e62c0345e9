/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_TORCHREC_TIERS_H
#define NEUROSHARD_EMIT_TORCHREC_TIERS_H

#include "base/json.h"
#include "core/plan.h"

/* Members of TorchRec's plans and constraints that describe the memory of a
 * table. */

/* Returns the compute kernel of the shard's table: "dense" for replicas,
 * otherwise the name of TorchRec's kernel for the shard's tier. */
const char *torchrec_kernel(const struct shard *shard);

/* Returns {"load_factor": F} for a cached shard, with "prefetch_pipeline": true
 * if the plan's job fills caches a batch ahead. The caller owns the object.
 * Returns NULL for other shards. */
json_t *torchrec_cache_params(const struct plan *plan,
                              const struct shard *shard);

/* Returns the arguments of TorchRec's EmbeddingOffloadStats for a table:
 * {"cacheability", "expected_lookups", "mrc_hist_counts", "height"}, from its
 * measured reach and misses. The caller owns the object. Returns NULL if
 * nothing was measured. */
json_t *torchrec_cache_stats(const struct table *table);

#endif
