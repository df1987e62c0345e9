/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_FILE_WRITE_H
#define NEUROSHARD_BASE_FILE_WRITE_H

#include "base/mem.h"

/* Writing of whole files. A writer leaves either the complete new file or the
 * old file untouched. */

/* Writes a file atomically: writes a temporary file in the same folder, fsyncs
 * it, renames it to path and fsyncs the folder. On failure the temporary file
 * is removed and the old file is untouched.
 *
 * - "-" is standard output.
 * - A path that exists and is no regular file (a device, a pipe) is written to
 *   directly.
 * - If path is a symbolic link, the file that it leads to is replaced or made.
 * - A new file's mode follows the umask; an existing file's mode is kept.
 * - Temporary files left in the folder by killed processes of this user are
 *   removed. Only the first 10,000 files of the folder are looked at. */
int file_write(const char *path, const void *data, size_t len,
               struct err *err) MUST_CHECK;

/* The program's own reader of a file format, as a callback. It returns 0 if it
 * accepts the text, else -1 with the reason. `source` is the file's name. */
typedef int file_check(const char *text, size_t len, const char *source,
                       struct arena *arena, struct err *err);
/* Writes a file atomically, like file_write, but checks the data first, and
 * compares the new file with them before it replaces the old file. If the check
 * refuses the data or the file differs, the old file stays. `check` may be
 * NULL. */
int file_write_checked(const char *path, const void *data, size_t len,
                       file_check *check, struct err *err) MUST_CHECK;

#endif
