/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 20
#define OWNER_MAX 80

/* Returns the path "FILE.lock", where FILE is the file that path leads to; NULL
 * if that file needs no lock. */
static char *lock_path(const char *path)
{
    struct buf name = {0};
    struct arena arena = {0};
    struct stat st;

    if (strcmp(path, "-") != 0 && (stat(path, &st) || S_ISREG(st.st_mode)))
        buf_printf(&name, "%s.lock", path_target(path, &arena));
    arena_release(&arena);
    return name.data;
}

int lock_file(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_SETLK, &whole);
}

/* Opens the lock file and tries to lock n bytes from `at` on; n == 0 locks all
 * bytes from `at` on. Returns 1 if they are locked, 0 if another process holds
 * a lock on one of the bytes, or -1 with the reason in errno. */
static int try_lock(struct lock *lock, off_t pos, off_t n)
{
    struct stat ours, named;
    bool is_going = true;
    int reason = 0;

    while (is_going) {
        struct flock part = {.l_type = F_WRLCK,
                             .l_whence = SEEK_SET,
                             .l_start = pos,
                             .l_len = n};

        lock->fd =
            open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (lock->fd < 0)
            return -1;
        reason = fcntl(lock->fd, F_SETLK, &part) ? errno : 0;
        if (!reason && !fstat(lock->fd, &ours) && !stat(lock->path, &named) &&
            ours.st_ino == named.st_ino && ours.st_dev == named.st_dev)
            return 1;
        /* Try again if the owner has removed the file that was opened, or is
         * about to remove it. An owner that is about to remove the file holds a
         * lock of the whole file. */
        is_going = !reason || (n && !fcntl(lock->fd, F_GETLK, &part) &&
                               (part.l_type == F_UNLCK || !part.l_len));
        close(lock->fd);
    }
    errno = reason;
    return reason == EAGAIN || reason == EACCES ? 0 : -1;
}

static void say_taken(const struct lock *lock, const char *path, double wait_s,
                      struct err *err)
{
    char owner[OWNER_MAX];
    int fd = open(lock->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t len = fd < 0 ? 0 : read(fd, owner, OWNER_MAX - 1);

    if (fd >= 0)
        close(fd);
    owner[len > 0 ? len : 0] = '\0';
    owner[strcspn(owner, "\n")] = '\0';
    if (!*owner)
        snprintf(owner, OWNER_MAX, "another process");
    if (interrupt_requested())
        err_set(err, ERR_INTERRUPTED,
                "interrupted while %s held the lock of '%s'", owner, path);
    else
        err_set(err, ERR_IO,
                "cannot write '%s': %s has held its lock '%s' for %g s", path,
                owner, lock->path, wait_s);
}

static void drop(struct lock *lock)
{
    mem_free(lock->path);
    lock->path = NULL;
}

/* Tries for wait_s seconds to lock n bytes of the lock file from `pos` on.
 * Returns 1 if the bytes are locked or no lock is needed, 0 if another process
 * holds a lock on one of the bytes, -1 with the err. For a lock of the whole
 * file, 0 also sets the err. */
static int take(struct lock *lock, const char *path, off_t pos, off_t n,
                double wait_s, struct err *err)
{
    const struct timespec pause = {0, POLL_MS * 1000000L};
    const double start_ms = clock_ms();
    int got;

    *lock = (struct lock){.path = lock_path(path), .fd = -1};
    if (!lock->path)
        return 1;
    while ((got = try_lock(lock, pos, n)) == 0 &&
           clock_ms() - start_ms < 1000 * wait_s && !interrupt_requested())
        nanosleep(&pause, NULL);
    if (got < 0)
        err_set(err, ERR_IO, "cannot lock '%s' with the lock file '%s': %s",
                path, lock->path, strerror(errno));
    else if (!got && !n)
        say_taken(lock, path, wait_s, err);
    if (got <= 0)
        drop(lock);
    return got;
}

int lock_take(struct lock *lock, const char *path, double wait_s,
              struct err *err)
{
    struct utsname host;

    if (take(lock, path, 0, 0, wait_s, err) <= 0)
        return -1;
    /* Writes the owner into the lock file for people who read it. The program
     * itself does not read it. */
    if (lock->path && !uname(&host) && !ftruncate(lock->fd, 0))
        dprintf(lock->fd, "process %ld on %.40s\n", (long)getpid(),
                host.nodename);
    return 0;
}

/* part >> 2 avoids the last byte that a file can have. A lock of that byte
 * alone would look like a lock of the whole rest of the file. */
int lock_try(struct lock *lock, const char *path, uint64_t part,
             struct err *err)
{
    return take(lock, path, (off_t)(part >> 2), 1, 0, err) < 0 ? -1 : 0;
}

void lock_release(struct lock *lock)
{
    if (!lock->path)
        return;
    /* Removes the lock file while the whole file is still locked. A process
     * that waits for this lock then finds that the file no longer has a name,
     * and opens the file that has the name now. */
    if (!lock_file(lock->fd))
        unlink(lock->path);
    close(lock->fd);
    drop(lock);
}
