/* SPDX-License-Identifier: MIT */
#include "base/path.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Number of symbolic links that are followed in a row. The kernel has the same
 * limit. */
#define MAX_LINKS 40

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

const char *path_folder(const char *path, struct arena *arena)
{
    size_t len = (size_t)(path_name(path) - path);

    return len ? arena_strndup(arena, path, len) : "./";
}

const char *path_target(const char *path, struct arena *arena)
{
    char link[PATH_MAX];
    ssize_t len;

    for (int i = 0;
         i < MAX_LINKS && (len = readlink(path, link, sizeof link)) > 0; i++)
        path = arena_printf(arena, "%s%.*s",
                            *link == '/' ? "" : path_folder(path, arena),
                            (int)len, link);
    return path;
}
