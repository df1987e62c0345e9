/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_PATH_H
#define NEUROSHARD_BASE_PATH_H

#include "base/mem.h"

/* Parts of paths, and the files to which paths lead. */

/* path_name returns "name" for "folder/name", as a pointer into path.
 * path_folder returns "folder/" for "folder/name" and "./" for "name". */
const char *path_name(const char *path) NEVER_NULL;
const char *path_folder(const char *path, struct arena *arena) NEVER_NULL;
/* Returns the path of the file that writing to path creates or replaces, after
 * following symbolic links. The file need not exist. For a loop of links it
 * returns some path of the loop. */
const char *path_target(const char *path, struct arena *arena) NEVER_NULL;

#endif
