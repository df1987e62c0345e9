/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_LOCK_H
#define NEUROSHARD_BASE_LOCK_H

#include "base/err.h"

/*
 * Locks: they admit one writer at a time to a file that is read, compared and
 * replaced. The lock of PATH is the file PATH.lock, which names the owner's
 * process and host. The lock is held as long as the operating system holds a
 * record lock on PATH.lock. So if a process dies, for whatever reason, the next
 * one can take over its lock.
 */
struct lock {
    char *path; /* owned; NULL if nothing is locked */
    int fd;
};

/* Locks the file that path leads to, through symbolic links. Standard output
 * and files that are not regular need no lock and get none. If another process
 * has the lock, waits for it up to wait_s seconds; after that ERR_IO names the
 * owner. ERR_INTERRUPTED if an interrupt comes meanwhile. */
int lock_take(struct lock *lock, const char *path, double wait_s,
              struct err *err) MUST_CHECK;
/* Locks one part of the work on a file without waiting. `part` is a hash that
 * identifies the part. If another process has this part, returns 0 and locks
 * nothing (lock->path is NULL). A process holds at most one part at a time.
 * Parts exclude a lock of the whole file. */
int lock_try(struct lock *lock, const char *path, uint64_t part,
             struct err *err) MUST_CHECK;
/* Removes the lock file unless other processes hold parts. A zeroed lock is
 * fine. */
void lock_release(struct lock *lock);

/* Takes only the record lock, on a file that is open for writing, until it is
 * closed. Returns -1 and errno if another process has the lock, or if the file
 * system has no locks. */
int lock_file(int fd);

#endif
