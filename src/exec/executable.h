/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXECUTABLE_H
#define NEUROSHARD_EXEC_EXECUTABLE_H

#include "core/plan.h"

/* What the executor does not execute yet: ERR_INPUT with one sentence that
 * names the table or the device. The plan must have passed plan_check. */
int executable_check(const struct plan *plan, struct err *err) MUST_CHECK;

#endif
