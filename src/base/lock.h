/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_LOCK_H
#define NEUROSHARD_BASE_LOCK_H

#include "base/err.h"

/*
 * One writer at a time of a file that is read, compared and replaced. The
 * lock is a file beside it, PATH.lock, which names the owner's process and
 * host. It counts for as long as the system holds a record lock on it, so the
 * lock of a process that died, however it died, is taken over by the next one.
 */
struct lock {
    char *path; /* owned; NULL where nothing is locked */
    int fd;
};

/* Locks what path leads to, through symbolic links. Standard output and what
 * is no regular file need no lock and get none. Where another process has the
 * lock, waits for it up to wait_s seconds; then ERR_IO names the owner.
 * ERR_INTERRUPTED at an interrupt meanwhile. */
int lock_take(struct lock *lock, const char *path, double wait_s,
              struct err *err) MUST_CHECK;
/* Locks one part of the work on that file, which its hash tells from the
 * others, without a wait: where another process has it nothing is locked, which
 * is no failure. A process has one part at a time, and nobody the whole. */
int lock_try(struct lock *lock, const char *path, uint64_t part,
             struct err *err) MUST_CHECK;
/* Removes the lock file, unless others have parts. A zeroed lock is fine. */
void lock_release(struct lock *lock);

/* Only the record lock, on a file that is open for writing, until it is closed.
 * -1 and errno where it is another's or there are no locks. */
int lock_file(int fd);

#endif
