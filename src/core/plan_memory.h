/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_MEMORY_H
#define NEUROSHARD_CORE_PLAN_MEMORY_H

#include "core/plan.h"

/* Memory and caches of the devices of a plan. */

/* Computes devices[r].memory of each device r: the bytes that the device
 * uses. */
void plan_count_memory(struct plan *plan);

/* Fills caches and n_caches of each of plan->devices, in the arena. Use and
 * misses, which only a price predicts, become NAN. */
void plan_fill_caches(struct plan *plan, struct arena *arena);

#endif
