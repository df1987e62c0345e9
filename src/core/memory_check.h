/* SPDX-License-Identifier: MIT */
/* Independent count of the memory of a plan. */
#ifndef NEUROSHARD_CORE_MEMORY_CHECK_H
#define NEUROSHARD_CORE_MEMORY_CHECK_H

#include "core/plan.h"

/* Checks that no device holds more than its memory, and that the memory stored
 * in plan->devices (if any) is the memory that the shards take. */
int memory_check(const struct plan *plan, struct err *err) MUST_CHECK;

#endif
