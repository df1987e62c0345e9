/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CLOCK_H
#define NEUROSHARD_BASE_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

/* CLOCK_MONOTONIC in milliseconds. */
double clock_ms(void);

/* "2026-11-21T04:05:06Z" of now. */
#define CLOCK_TEXT_MAX 24
const char *clock_utc(char buf[CLOCK_TEXT_MAX]);

#ifdef __cplusplus
}
#endif
#endif
