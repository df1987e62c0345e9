/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_INTERRUPT_H
#define NEUROSHARD_BASE_INTERRUPT_H

#include <stdbool.h>

/*
 * Interrupts: after interrupt_install the first SIGINT or SIGTERM sets a flag
 * that long loops poll, the second one kills the process.
 */
void interrupt_install(void);
bool interrupt_requested(void);

/*
 * A command that has nothing to keep yet ends at once: the first signal writes
 * `said` on standard error and `answer` on standard output, and ends the
 * process with the status of ERR_INTERRUPTED. Both texts must stay where they
 * are. Not while interrupt_keep(true) says that there is something to keep, and
 * not between interrupt_hold and interrupt_release, which nest: then the signal
 * sets the flag, and a release for which may_end is set ends the process, too.
 */
void interrupt_end_at_once(const char *said, const char *answer);
void interrupt_keep(bool has_something);
void interrupt_hold(void);
void interrupt_release(bool may_end);
/* Waits until fd, which may be a pipe, can be read or written without waiting,
 * or is at its end. -1 where an interrupt came first: a read that waits would
 * go on after it. */
int interrupt_wait(int fd, bool to_write);

#endif
