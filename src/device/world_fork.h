/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_WORLD_FORK_H
#define NEUROSHARD_DEVICE_WORLD_FORK_H

#include "device/world.h"

/* Worlds of forked processes on this host. */

/* Forks n processes. Each new process gets in *out a world of all n processes
 * on this host. The caller gets NULL in *out after all of them have ended. If
 * one process fails, the others are killed, and the call fails with the error
 * code of the first process that failed. The message is empty if that process
 * exited by itself, because it has already printed the reason. MPI is not
 * needed. Fails with ERR_USAGE if a launcher started this process. Call it
 * before threads are started, before devices are opened and before anything is
 * printed. */
#define WORLD_MAX_FORKS 256
int world_fork(struct world **out, uint32_t n, struct err *err) MUST_CHECK;

#endif
