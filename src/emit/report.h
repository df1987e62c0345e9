/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_REPORT_H
#define NEUROSHARD_EMIT_REPORT_H

#include "emit/report_figures.h"

/*
 * Reports of a plan as text.
 *
 * Every plan that is passed to this module must have passed plan_check, and its
 * shards must be sorted.
 */

/*
 * Prints the report of a priced plan:
 *
 *   - the step time, the lower bound, the bottleneck and the assumptions
 *   - phases and memory by GPU
 *   - the most expensive tables
 *
 * The report ends in a newline. Tables keep to the line width. Lines of text
 * are longer, and the caller has to wrap them (text_wrap_lines).
 */
void emit_report(const struct plan *plan, const struct report_options *options,
                 struct buf *out);

#endif
