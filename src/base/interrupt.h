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
/* Waits until fd, which may be a pipe, can be read or written without waiting,
 * or is at its end. -1 where an interrupt came first: a read that waits would
 * go on after it. */
int interrupt_wait(int fd, bool to_write);

#endif
