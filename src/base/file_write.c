/* SPDX-License-Identifier: MIT */
#include "base/file_write.h"

#include "base/file_claims.h"
#include "base/interrupt.h"
#include "base/lock.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMP_PREFIX ".neuroshard-"
#define TEMP_TRIES 100
/* Maximum number of files of a folder that are looked at in the search for
 * orphans, the temporary files of killed processes. Listing 10,000 files takes
 * about as long as a write to the disk. */
#define MAX_LISTED 10000

/* A file to be written. */
struct output {
    const char *path; /* path that messages name */
    const char *data;
    size_t len;
    file_check *check; /* check of the data; NULL: no check */
    bool is_compared;  /* the new file is compared with the data */
};

static int write_all(int fd, const struct output *output)
{
    const char *data = output->data;
    size_t len = output->len;

    while (len) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EAGAIN && interrupt_wait(fd, true)) {
            errno = EINTR;
            return -1;
        }
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int cannot_write(const struct output *output, int reason,
                        struct err *err)
{
    return err_set(err, ERR_IO, "cannot write '%s': %s", output->path,
                   strerror(reason));
}

/* Checks that the program's own reader accepts the data. */
static int check(const struct output *output, struct arena *arena,
                 struct err *err)
{
    if (!output->check ||
        !output->check(output->data, output->len, output->path, arena, err))
        return 0;
    return err_prefix(err, "'%s' was not written, as it could not be read back",
                      output->path);
}

static int write_standard(const struct output *output, struct err *err)
{
    if (fflush(stdout) || write_all(STDOUT_FILENO, output))
        return err_set(err, ERR_IO, "cannot write standard output: %s",
                       strerror(errno));
    return 0;
}

/* Writes to a device or a pipe. If a named pipe has no reader yet, waits until
 * a reader or an interrupt comes. */
static int write_special(const struct output *output, struct err *err)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    int fd, reason = 0;

    while ((fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK)) < 0 &&
           errno == ENXIO && !interrupt_requested())
        nanosleep(&pause, NULL);
    if (fd < 0 && interrupt_requested())
        return err_set(err, ERR_INTERRUPTED,
                       "interrupted while waiting for a reader of '%s'",
                       output->path);
    if (fd < 0)
        return cannot_write(output, errno, err);
    if (write_all(fd, output))
        reason = errno;
    if (close(fd) && !reason)
        reason = errno;
    return reason ? cannot_write(output, reason, err) : 0;
}

/* Returns whether a file is an orphan: its name has the form that open_temp
 * creates, and the process whose id it contains no longer exists on this
 * machine. */
static bool is_orphan(const char *name)
{
    const size_t n_prefix = sizeof TEMP_PREFIX - 1;
    char expected[64], *rest;
    long pid, i;

    if (strncmp(name, TEMP_PREFIX, n_prefix) != 0)
        return false;
    pid = strtol(name + n_prefix, &rest, 10);
    i = *rest ? strtol(rest + 1, NULL, 10) : 0;
    if (pid <= 0)
        return false;
    snprintf(expected, sizeof expected, TEMP_PREFIX "%ld-%ld", pid, i);
    return !strcmp(name, expected) && kill((pid_t)pid, 0) && errno == ESRCH;
}

/* Removes temporary files that killed processes have left in the folder. */
static void remove_orphans(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    for (int i = 0; dir && i < MAX_LISTED && (entry = readdir(dir)); i++) {
        struct stat st;
        int fd;

        if (!is_orphan(entry->d_name))
            continue;
        fd = openat(dirfd(dir), entry->d_name,
                    O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
            !lock_file(fd))
            unlinkat(dirfd(dir), entry->d_name, 0);
        close(fd);
    }
    if (dir)
        closedir(dir);
}

/* Creates a file in the folder under an unused name; its mode follows the
 * umask. The file is locked until its rename. If machines share the folder over
 * a network, the lock shows the other machines that the writer is alive.
 * Returns the descriptor, or -1 and errno. */
static int open_temp(char **temp_path, const char *folder, struct arena *arena)
{
    int fd = -1;

    for (int i = 0; i < TEMP_TRIES && fd < 0; i++) {
        *temp_path = arena_printf(arena, "%s" TEMP_PREFIX "%ld-%d", folder,
                                  (long)getpid(), i);
        fd = open(*temp_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd >= 0)
        (void)lock_file(fd);
    return fd;
}

/* Compares the new file with its data, which were checked before. */
static int check_file(const struct output *output, int fd, struct err *err)
{
    char back[1 << 16];
    size_t len = 0;
    bool is_same = true;
    ssize_t n;

    if (!output->is_compared)
        return 0;
    do {
        n = pread(fd, back, sizeof back, (off_t)len);
        if (n < 0)
            continue;
        is_same = (size_t)n <= output->len - len &&
                  !memcmp(back, output->data + len, (size_t)n);
        len += (size_t)n;
    } while ((n > 0 && is_same) || (n < 0 && errno == EINTR));
    if (n < 0)
        return cannot_write(output, errno, err);
    return is_same && len == output->len
               ? 0
               : err_set(err, ERR_IO,
                         "cannot write '%s': the file is not as it was written",
                         output->path);
}

/* Replaces the file by a rename. mode 0: the default mode of a new file. */
static int write_atomically(const struct output *output, mode_t mode,
                            struct arena *arena, struct err *err)
{
    const char *target = path_target(output->path, arena);
    const char *folder = path_folder(target, arena);
    char *temp_path;
    int fd, rc = -1;

    remove_orphans(folder);
    fd = open_temp(&temp_path, folder, arena);
    if (fd < 0 || (mode && fchmod(fd, mode)) || write_all(fd, output) ||
        fsync(fd))
        cannot_write(output, errno, err);
    else if (!check_file(output, fd, err))
        rc = rename(temp_path, target) ? cannot_write(output, errno, err) : 0;
    if (rc && fd >= 0)
        unlink(temp_path);
    if (fd >= 0)
        close(fd); /* no check needed: fsync has reported write errors */
    /* Writes the folder to the disk, so that the rename survives a power cut.
     * The result is ignored, because the new file is complete and in place
     * anyway. */
    if (!rc && (fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    return rc;
}

static int write_output(struct output output, struct err *err)
{
    const char *path = output.path;
    bool is_standard = !strcmp(path, "-");
    struct stat old = {.st_mode = S_IFREG};
    struct arena arena = {0};
    int rc = -1;

    if (file_use(path, FILE_WRITE, err))
        return -1;
    if (!is_standard && stat(path, &old) && errno != ENOENT)
        return cannot_write(&output, errno, err);
    if (check(&output, &arena, err))
        goto out;
    interrupt_hold(); /* an interrupt would leave a temporary file */
    rc = !is_standard && S_ISREG(old.st_mode)
             ? write_atomically(&output, old.st_mode & 07777, &arena, err)
         : is_standard ? write_standard(&output, err)
                       : write_special(&output, err);
    interrupt_release(!rc);
out:
    arena_release(&arena);
    return rc;
}

int file_write_checked(const char *path, const void *data, size_t len,
                       file_check *reader, struct err *err)
{
    return write_output((struct output){path, data, len, reader, true}, err);
}

int file_write(const char *path, const void *data, size_t len, struct err *err)
{
    return write_output((struct output){path, data, len, NULL, false}, err);
}
