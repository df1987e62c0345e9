/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_CACHE_FINDINGS_H
#define NEUROSHARD_EXEC_CACHE_FINDINGS_H

#include "exec/exec_result.h"
#include "exec/placement.h"

/* Use of a cache while its rank was timed. */
struct cache_findings {
    struct cache_counts counts;
    double full_frac; /* share of the slots that held rows at the end */
};

/* Stores the uses of the caches of a loaded rank in found[n_caches]. */
void cache_findings_keep(struct cache_findings *found,
                         const struct placement *placement, uint32_t rank);
/* Gathers the uses of all caches, each from the process of its rank, in the
 * result. Collective. */
int cache_findings_collect(struct exec_result *result,
                           const struct placement *placement,
                           const struct cache_findings *found,
                           struct arena *arena, struct err *err) MUST_CHECK;

#endif
