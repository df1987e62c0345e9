/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_CHUNK ((size_t)64 << 10)
#define TEMP_TRIES 100

static bool is_standard(const char *path)
{
    return !strcmp(path, "-");
}

static int read_all(struct buf *buf, int fd)
{
    ssize_t n;

    do {
        if (buf->cap - buf->len < READ_CHUNK) {
            buf->cap = buf->cap * 2 + READ_CHUNK;
            buf->data = mem_grow(buf->data, buf->cap, 1);
        }
        n = read(fd, buf->data + buf->len, buf->cap - buf->len);
        if (n > 0)
            buf->len += (size_t)n;
    } while (n > 0 || (n < 0 && errno == EINTR));
    return n < 0 ? -1 : 0;
}

int file_read(const char **text, size_t *len, const char *path,
              struct arena *arena, struct err *err)
{
    bool is_stdin = is_standard(path);
    struct buf buf = {0};
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    int rc = -1;

    if (fd < 0) {
        err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
        goto out;
    }
    if (read_all(&buf, fd)) {
        const char *reason = strerror(errno);

        if (is_stdin)
            err_set(err, ERR_IO, "cannot read standard input: %s", reason);
        else
            err_set(err, ERR_IO, "cannot read '%s': %s", path, reason);
        goto out;
    }
    *text = arena_strndup(arena, buf.data, buf.len);
    *len = buf.len;
    rc = 0;
out:
    buf_release(&buf);
    if (fd >= 0 && !is_stdin)
        close(fd);
    return rc;
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int cannot_write(const char *path, int reason, struct err *err)
{
    return err_set(err, ERR_IO, "cannot write '%s': %s", path,
                   strerror(reason));
}

static int write_standard(const char *data, size_t len, struct err *err)
{
    if (fflush(stdout) || write_all(STDOUT_FILENO, data, len))
        return err_set(err, ERR_IO, "cannot write standard output: %s",
                       strerror(errno));
    return 0;
}

static int write_special(const char *path, const char *data, size_t len,
                         struct err *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), reason = 0;

    if (fd < 0)
        return cannot_write(path, errno, err);
    if (write_all(fd, data, len))
        reason = errno;
    if (close(fd) && !reason)
        reason = errno;
    return reason ? cannot_write(path, reason, err) : 0;
}

/* "folder/" of "folder/name", "" of "name". */
static int folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (int)(slash + 1 - path) : 0;
}

/* Creates a file in path's folder under a name nobody has; its mode follows
 * the umask. Returns the descriptor, or -1 and errno. */
static int open_temp(char **temp_path, const char *path, struct arena *arena)
{
    int fd = -1;

    for (int i = 0; i < TEMP_TRIES && fd < 0; i++) {
        *temp_path = arena_printf(arena, "%.*s.neuroshard-%ld-%d",
                                  folder_len(path), path, (long)getpid(), i);
        fd = open(*temp_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* Makes a rename outlast a power cut. The new file is whole and in place
 * whatever this answers, so its answer is not asked for. */
static void sync_folder(const char *path, struct arena *arena)
{
    int len = folder_len(path), fd;
    const char *folder = len ? arena_printf(arena, "%.*s", len, path) : ".";

    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

/* 0, or the errno of the first thing that failed. mode 0: leave it. */
static int write_synced(int fd, const char *data, size_t len, mode_t mode)
{
    int reason = 0;

    if ((mode && fchmod(fd, mode)) || write_all(fd, data, len) || fsync(fd))
        reason = errno;
    if (close(fd) && !reason)
        reason = errno;
    return reason;
}

/* Messages say `path`, what is replaced is `target`. */
static int write_atomically(const char *target, const char *path,
                            const char *data, size_t len, mode_t mode,
                            struct err *err)
{
    struct arena arena;
    char *temp_path;
    int fd, reason, rc = -1;

    arena_init(&arena);
    fd = open_temp(&temp_path, target, &arena);
    if (fd < 0) {
        cannot_write(path, errno, err);
        goto out;
    }
    reason = write_synced(fd, data, len, mode);
    if (!reason && rename(temp_path, target))
        reason = errno;
    if (reason) {
        unlink(temp_path);
        cannot_write(path, reason, err);
        goto out;
    }
    sync_folder(target, &arena);
    rc = 0;
out:
    arena_release(&arena);
    return rc;
}

int file_write(const char *path, const void *data, size_t len, struct err *err)
{
    struct stat old;
    char *target;
    int rc;

    if (is_standard(path))
        return write_standard(data, len, err);
    if (stat(path, &old))
        return write_atomically(path, path, data, len, 0, err);
    if (!S_ISREG(old.st_mode))
        return write_special(path, data, len, err);
    /* The file that a symbolic link leads to is replaced, not the link. */
    target = realpath(path, NULL);
    if (!target)
        return cannot_write(path, errno, err);
    rc = write_atomically(target, path, data, len, old.st_mode & 07777, err);
    free(target);
    return rc;
}

int file_exists(const char *path)
{
    return access(path, R_OK) == 0;
}

/* The folder of the running program, with its slash; "" if unknown. */
static const char *program_folder(struct arena *arena)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);

    if (len <= 0)
        return "";
    path[len] = '\0';
    return arena_printf(arena, "%.*s", folder_len(path), path);
}

const char *file_find_data(const char *name, struct arena *arena)
{
    const char *wanted = getenv("NEUROSHARD_DATA");
    const char *paths[] = {
        wanted ? arena_printf(arena, "%s/%s", wanted, name) : "",
        arena_printf(arena, "%sdata/%s", program_folder(arena), name),
        arena_printf(arena, "%s/%s", NEUROSHARD_DATADIR, name),
    };

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (*paths[i] && file_exists(paths[i]))
            return paths[i];
    return NULL;
}
