/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CLOCK_H
#define NEUROSHARD_BASE_CLOCK_H

#include "base/host_device.h"

EXTERN_C_BEGIN

/* Returns the time of CLOCK_MONOTONIC in milliseconds. */
double clock_ms(void);
/* Return the processor time of the calling thread, and that of all threads of
 * the process, in milliseconds. */
double clock_thread_ms(void);
double clock_process_ms(void);

/* Writes the current time as "2026-11-21T04:05:06Z" and returns buf. */
#define CLOCK_TEXT_MAX 24
const char *clock_utc(char buf[CLOCK_TEXT_MAX]);

EXTERN_C_END

#endif
