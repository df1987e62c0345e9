/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_LOCK_H
#define NEUROSHARD_BASE_LOCK_H

#include "base/err.h"

/*
 * A lock admits one writer at a time to a file that is read, compared and
 * replaced. The lock of PATH is the file PATH.lock, which names the owner's
 * process and host. The lock is held as long as the operating system holds a
 * record lock on PATH.lock. So if a process dies, for whatever reason, the next
 * one can take over its lock.
 */
struct lock {
    char *path; /* path of the lock file; owned; NULL if no file is locked */
    int fd;
};

/* Locks the file that path leads to, through symbolic links. Standard output
 * and files that are not regular need no lock and get none. If another process
 * has the lock, waits for it up to wait_s seconds; after that it fails with
 * ERR_IO, which names the owner. Fails with ERR_INTERRUPTED if an interrupt
 * comes during the wait. */
int lock_take(struct lock *lock, const char *path, double wait_s,
              struct err *err) MUST_CHECK;
/* Locks one part of the work on a file without waiting. `part` is a hash that
 * identifies the part. If another process has locked this part, returns 0 and
 * locks nothing (lock->path is NULL). A process holds at most one part at a
 * time. While a part is locked, no other process can lock the whole file. */
int lock_try(struct lock *lock, const char *path, uint64_t part,
             struct err *err) MUST_CHECK;
/* Releases the lock, and removes the lock file unless other processes hold
 * locks of parts. Accepts a zeroed lock. */
void lock_release(struct lock *lock);

/* Takes a record lock on the open file fd itself; there is no separate lock
 * file. fd must be open for writing. The lock is held until fd is closed.
 * Returns -1 and errno if another process has the lock, or if the file system
 * has no locks. */
int lock_file(int fd);

#endif
