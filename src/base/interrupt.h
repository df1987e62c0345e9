/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_INTERRUPT_H
#define NEUROSHARD_BASE_INTERRUPT_H

#include <stdbool.h>

/*
 * Interrupts. After interrupt_install the first SIGINT or SIGTERM sets a flag
 * that long loops poll. The second signal kills the process.
 */
void interrupt_install(void);
bool interrupt_requested(void);

/*
 * Immediate end, for a command that has no results to keep yet. After
 * interrupt_end_at_once the first signal writes `said` to standard error and
 * `answer` to standard output, and ends the process with the status of
 * ERR_INTERRUPTED. Both texts must stay valid.
 *
 * The process is not ended in two cases; the signal then only sets the flag:
 *
 * - after interrupt_keep(true), which means that there are results to keep;
 * - between interrupt_hold and interrupt_release, which nest. interrupt_release
 *   with may_end set ends the process if a signal came since interrupt_hold.
 */
void interrupt_end_at_once(const char *said, const char *answer);
void interrupt_keep(bool has_something);
void interrupt_hold(void);
void interrupt_release(bool may_end);
/* Waits until fd, which may be a pipe, can be read or written without blocking,
 * or is at its end. Returns -1 if an interrupt came first. A blocking read
 * would continue after an interrupt. */
int interrupt_wait(int fd, bool to_write);

#endif
