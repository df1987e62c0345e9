/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CLOCK_H
#define NEUROSHARD_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CLOCK_MONOTONIC in milliseconds. */
double clock_ms(void);

/* "2026-11-21T04:05:06Z" of now. */
#define CLOCK_TEXT_MAX 24
const char *clock_utc(char buf[CLOCK_TEXT_MAX]);

/*
 * Interrupts: after interrupt_install the first SIGINT or SIGTERM sets a flag
 * that long loops poll, the second one kills the process.
 */
void interrupt_install(void);
bool interrupt_requested(void);
/* Waits until fd, which may be a pipe, can be read or written without waiting,
 * or is at its end. -1 where an interrupt came first: a read that waits would
 * go on after it. */
int interrupt_wait_readable(int fd);
int interrupt_wait_writable(int fd);

/*
 * Progress on a terminal: one line on stderr, rewritten at most ten times a
 * second: label, done/total, percent, rate, time left. Where stderr is no
 * terminal nothing is printed.
 */
struct progress {
    const char *label; /* not owned */
    uint64_t total;    /* 0: unknown */
    double limit_s;    /* 0: none; ends then, if not before */
    double start_ms, last_ms;
    bool is_terminal;
};
void progress_start(struct progress *progress, const char *label,
                    uint64_t total);
/* Work that ends after so many seconds: the time left is counted to there. */
void progress_limit(struct progress *progress, double limit_s);
void progress_update(struct progress *progress, uint64_t done);
/* Clears the line. */
void progress_finish(struct progress *progress);

#ifdef __cplusplus
}
#endif
#endif
