/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_CHUNK ((size_t)64 << 10)

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

int file_exists(const char *path)
{
    return access(path, R_OK) == 0;
}

/* The folder of the running program, with its slash; "" if unknown. */
static const char *program_folder(struct arena *arena)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash;

    path[len > 0 ? len : 0] = '\0';
    slash = strrchr(path, '/');
    return slash ? arena_strndup(arena, path, (size_t)(slash + 1 - path)) : "";
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
