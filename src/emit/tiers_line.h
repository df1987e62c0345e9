/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_TIERS_LINE_H
#define NEUROSHARD_EMIT_TIERS_LINE_H

#include "core/plan.h"

/* Prints a line with the tables in host memory: "2 tables cached (a b), least
 * hits 84 % on GPU 1; 1 not cached (c)". The hits are those that the plan
 * predicts for its worst cache. `label` precedes the line. Prints nothing if
 * all tables are in the memory of GPUs. */
void emit_tiers_line(const struct plan *plan, const char *label,
                     struct buf *out);

#endif
