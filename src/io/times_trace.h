/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TIMES_TRACE_H
#define NEUROSHARD_IO_TIMES_TRACE_H

#include "io/times.h"

/*
 * Reader of the trace that PyTorch's profiler (Kineto) writes for a rank: JSON
 * with traceEvents, and with the rank in distributedInfo.
 *
 * The phase of an event follows from the names that TorchRec and FBGEMM give
 * their ranges and kernels. On a GPU the events are kernels and the ranges
 * there; a kernel also belongs to the phase of the operator that launched it.
 * In a trace without a GPU the events are operators and ranges of the host. The
 * range "ProfilerStep#N" in which an event begins gives its step. Events that
 * begin inside of an earlier event of the same phase are part of it.
 */

/* True if the text is a trace. It ends in a NUL. */
bool times_is_trace(const char *text);

/* Adds the times of a trace: the sum of each phase in each step. Events are
 * parsed one by one, so the memory needed does not grow with their other
 * members. ERR_INPUT messages name the line, or the number of ranks that
 * differs from the plan's. */
int times_add_trace(struct times *times, const char *text, const char *source,
                    struct arena *arena, struct err *err) MUST_CHECK;

#endif
