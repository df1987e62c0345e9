/* SPDX-License-Identifier: MIT */
/* Independent count of the memory of a plan. */
#ifndef NEUROSHARD_CORE_MEMORY_CHECK_H
#define NEUROSHARD_CORE_MEMORY_CHECK_H

#include "core/plan.h"

/* Checks that no device holds more than its memory, that no host holds more
 * than its memory for tables, and that the memory and the caches stored in
 * plan->devices (if any) are those that the shards take. pieces[n_shards] are
 * all shards of the plan, sorted. */
int memory_check(const struct plan *plan, const struct shard *const *pieces,
                 struct err *err) MUST_CHECK;

#endif
