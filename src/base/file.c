/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include "base/file_claims.h"
#include "base/gzip.h"
#include "base/interrupt.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_CHUNK ((size_t)256 << 10)

/* Reads everything from fd. Returns 0, or an errno:
 *
 * - EFBIG if there are more than FILE_MAX_BYTES; a regular file is refused
 *   before any of it is read
 * - EINTR after an interrupt
 * - the reason why reading failed */
static int read_all(struct buf *buf, int fd)
{
    struct stat st;
    ssize_t n;

    if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
        st.st_size > (off_t)FILE_MAX_BYTES)
        return EFBIG;
    do {
        if (interrupt_wait(fd, false))
            return EINTR;
        n = read(fd, buf_reserve(buf, READ_CHUNK), READ_CHUNK);
        if (n > 0)
            buf->len += (size_t)n;
        if (buf->len > FILE_MAX_BYTES)
            return EFBIG;
    } while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
    return n < 0 ? errno : 0;
}

/* Replaces gzip data by their content. Returns NULL, or the reason why it
 * cannot. */
static const char *unpack(struct buf *buf)
{
    struct buf content = {0};
    const char *reason;

    if (!gzip_is(buf->data, buf->len))
        return NULL;
    reason = gzip_unpack(&content, buf->data, buf->len, FILE_MAX_BYTES);
    buf_release(buf);
    *buf = content;
    return reason;
}

const char *file_source(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

int file_read(const char **text, size_t *len, const char *path,
              struct arena *arena, struct err *err)
{
    const bool is_stdin = !strcmp(path, "-");
    const char *name =
        is_stdin ? file_source(path) : arena_printf(arena, "'%s'", path);
    const char *damage = NULL;
    struct buf buf = {0};
    int fd, reason;

    if (file_use(path, FILE_READ, err))
        return -1;
    /* O_NONBLOCK: opening a named pipe without a writer does not block.
     * read_all waits for the writer. */
    fd =
        is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(err, ERR_IO, "cannot open '%s': %s", path,
                       strerror(errno));
    interrupt_hold(); /* so the error of an interrupt names the file */
    reason = read_all(&buf, fd);
    interrupt_release(!reason);
    if (!reason)
        damage = unpack(&buf);
    *text = arena_strndup(arena, buf.data, buf.len);
    *len = buf.len;
    buf_release(&buf);
    if (fd != STDIN_FILENO)
        close(fd);
    if (damage)
        return err_set(err, ERR_IO, "cannot read %s: %s", name, damage);
    if (!reason)
        return 0;
    if (reason == EINTR)
        return err_set(err, ERR_INTERRUPTED, "interrupted while reading %s",
                       name);
    if (reason == EFBIG)
        return err_set(
            err, ERR_IO,
            "%s is larger than %zu MiB, the largest file that can be read",
            name, FILE_MAX_BYTES >> 20);
    return err_set(err, ERR_IO, "cannot read %s: %s", name, strerror(reason));
}

int file_exists(const char *path)
{
    return access(path, R_OK) == 0;
}

const char *file_find_data(const char *name, struct arena *arena)
{
    const char *wanted = getenv("NEUROSHARD_DATA");
    const char *beside =
        path_folder(path_target("/proc/self/exe", arena), arena);
    const char *paths[] = {
        wanted && *wanted ? arena_printf(arena, "%s/%s", wanted, name) : "",
        arena_printf(arena, "%s../share/neuroshard/%s", beside, name),
        arena_printf(arena, "%sdata/%s", beside, name),
        arena_printf(arena, "%s/%s", NEUROSHARD_DATADIR, name),
    };

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (*paths[i] && file_exists(paths[i]))
            return paths[i];
    return NULL;
}

const char *const *file_list_data(const char *folder, const char *suffix,
                                  struct arena *arena)
{
    const char *path = file_find_data(folder, arena), **names;
    struct dirent **entries = NULL;
    int n = path ? scandir(path, &entries, NULL, alphasort) : 0;
    size_t n_names = 0;

    if (n < 0 && errno == ENOMEM)
        mem_exhausted(1, sizeof(**entries));
    names = ARENA_NEW(arena, const char *, n > 0 ? n + 1 : 1);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        size_t len = strlen(name), stem = len - strlen(suffix);

        if (stem && stem < len && !strcmp(name + stem, suffix))
            names[n_names++] = arena_strndup(arena, name, stem);
        free(entries[i]);
    }
    free(entries);
    return names;
}
