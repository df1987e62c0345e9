/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_REPORT_DENSE_H
#define NEUROSHARD_EMIT_REPORT_DENSE_H

#include "core/plan.h"

/* Prints the time and the memory that the dense part takes on each GPU, one
 * line for each item of memory. Prints nothing if the plan has no dense
 * part. */
void report_dense(const struct plan *plan, struct buf *out);

#endif
