/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_WIRE_LINE_H
#define NEUROSHARD_EMIT_WIRE_LINE_H

#include "core/plan.h"

/* Returns whether another plan is better on a slower wire by more than the
 * error. If not, emit_wire_line prints nothing. */
bool emit_has_wire_line(const struct plan *plan);
/* Prints the assumed bandwidth of the wire, and the bandwidth below which
 * another plan is better, without an end of line: "wire 45.5 GB/s assumed;
 * below 12, plan with --inter-gbps: 8 % faster at 11". The gain is in GPU work,
 * at the smallest of wire_shares. Prints nothing if no other plan is better. */
void emit_wire_line(const struct plan *plan, struct buf *out);

#endif
